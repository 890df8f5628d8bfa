#include "memory.h"

#include <sys/mman.h>

#include <cstring>

namespace vgpu {
namespace {

// Of zeros, of which none takes room before it is used.
void* pages(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

Memory::~Memory() {
  for (auto& [at, block] : blocks_) {
    if (block.own) munmap(reinterpret_cast<void*>(at), block.bytes);
    if (block.written) munmap(block.written, block.bytes);
  }
}

void* Memory::allocate(uint64_t bytes, bool written) {
  std::lock_guard<std::mutex> hold(lock_);
  if (bytes == 0 || bytes > total_ || used_ + bytes > total_) return nullptr;
  void* at = pages(bytes);
  if (!at) return nullptr;
  uint8_t* known = watching_ && !written ? static_cast<uint8_t*>(pages(bytes)) : nullptr;
  blocks_[reinterpret_cast<uint64_t>(at)] = {bytes, true, made_++, known};
  used_ += bytes;
  return at;
}

bool Memory::release(void* at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(at));
  if (found == blocks_.end() || !found->second.own) return false;
  munmap(at, found->second.bytes);
  if (found->second.written) munmap(found->second.written, found->second.bytes);
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

uint8_t* Memory::written_at(uint64_t at, uint64_t bytes) const {
  if (!watching_ || !bytes) return nullptr;
  std::lock_guard<std::mutex> hold(lock_);
  auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  const auto& [begin, block] = *--next;
  return block.written && at + bytes <= begin + block.bytes ? block.written + (at - begin) : nullptr;
}

uint8_t* Memory::written(const Extent& of) const { return written_at(of.begin, of.end - of.begin); }

void Memory::wrote(uint64_t at, uint64_t bytes) {
  if (uint8_t* known = written_at(at, bytes)) std::memset(known, 1, bytes);
}

void Memory::copied(uint64_t to, uint64_t from, uint64_t bytes) {
  uint8_t *there = written_at(to, bytes), *here = written_at(from, bytes);
  if (there && here) std::memmove(there, here, bytes);
  else if (there) std::memset(there, 1, bytes);
}

uint64_t Memory::unwritten(uint64_t at, uint64_t bytes) const {
  const uint8_t* known = written_at(at, bytes);
  const void* first = known ? std::memchr(known, 0, bytes) : nullptr;
  return first ? at + static_cast<uint64_t>(static_cast<const uint8_t*>(first) - known) : 0;
}

}  // namespace vgpu
