#include "memory.h"

#include <sys/mman.h>

namespace vgpu {

Memory::~Memory() {
  for (auto& [at, block] : blocks_)
    if (block.own) munmap(reinterpret_cast<void*>(at), block.bytes);
}

void* Memory::allocate(uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  if (bytes == 0 || bytes > total_ || used_ + bytes > total_) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  blocks_[reinterpret_cast<uint64_t>(at)] = {bytes, true, made_++};
  used_ += bytes;
  return at;
}

bool Memory::release(void* at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(at));
  if (found == blocks_.end() || !found->second.own) return false;
  munmap(at, found->second.bytes);
  used_ -= found->second.bytes;
  blocks_.erase(found);
  generation_++;
  return true;
}

void Memory::add(const void* at, uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  blocks_[reinterpret_cast<uint64_t>(at)] = {bytes, false, made_++};
}

void Memory::remove(const void* at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(at));
  if (found == blocks_.end() || found->second.own) return;
  blocks_.erase(found);
  generation_++;
}

Extent Memory::find(uint64_t address) const {
  std::lock_guard<std::mutex> hold(lock_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {};
  --next;
  uint64_t end = next->first + next->second.bytes;
  return address < end ? Extent{next->first, end, next->second.own, next->second.number} : Extent{};
}

}  // namespace vgpu
