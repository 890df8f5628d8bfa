// Device memory: allocations with guards, quarantine of freed memory, and what was written.
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace vgpu {
namespace {

constexpr uint64_t kMaxRange = 1ull << 43, kRangePerByte = 256;  // of addresses
constexpr uint64_t kLeastGuard = 256 << 10, kMaxGuard = 256 << 20;

// Of zeros, of which none takes room before it is used.
void* pages(uint64_t bytes, void* where = nullptr) {
  const int fixed = where ? MAP_FIXED : 0;
  void* at = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// As much room again behind it as it takes itself: an index that is twice too large is seen.
uint64_t guard(uint64_t bytes) { return std::clamp(bytes, kLeastGuard, kMaxGuard); }
void* pointer(uint64_t at) { return reinterpret_cast<void*>(at); }

}  // namespace

DeviceMemory::DeviceMemory(uint64_t total, std::optional<uint64_t> placement) : total_(total) {
  if (placement) placement_.emplace(*placement);
}

DeviceMemory::~DeviceMemory() {
  for (auto& [at, block] : blocks_)
    if (block.written) munmap(block.written, block.span);
  if (range_) munmap(pointer(range_), range_bytes_);
}

// The range, as large as the system lets it be.
bool DeviceMemory::open() {
  if (address_range_) return true;
  for (uint64_t bytes = std::min(std::max(total_, uint64_t(1) << 30) * kRangePerByte, kMaxRange); bytes >= total_; bytes /= 2) {
    void* at = pages(bytes);
    if (!at) continue;
    madvise(at, bytes, MADV_NOHUGEPAGE);  // allocations lie apart: a large page each would be mostly for nothing
    range_ = reinterpret_cast<uint64_t>(at), range_bytes_ = bytes;
    address_range_ = std::make_unique<AddressRange>(range_ + kPage, range_ + bytes);
    return true;
  }
  return false;
}

// Pages of their own; where a seed places them anywhere in the range, and the first byte anywhere in the first page.
uint64_t DeviceMemory::place(uint64_t span, uint64_t alignment) {
  const auto whole_pages = [](uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  if (!placement_) return address_range_->take(whole_pages(span), kPage, guard(whole_pages(span)));
  const uint64_t pages = range_bytes_ / kPage;
  const uint64_t from = range_ + placement_->next() % pages * kPage;
  const uint64_t offset = placement_->next_below(static_cast<uint32_t>(kPage / alignment)) * alignment;
  const uint64_t bytes = whole_pages(offset + span);
  const uint64_t at = address_range_->take_behind(from, bytes, kPage, guard(bytes));
  return at ? at + offset : 0;
}

void* DeviceMemory::allocate(uint64_t bytes, uint64_t span, bool written, uint64_t alignment) {
  std::lock_guard<std::mutex> hold(lock_);
  if (bytes == 0 || bytes > total_ || used_ + bytes > total_ || !open()) return nullptr;
  const uint64_t at = place(span, alignment);
  if (!at) return nullptr;
  uint8_t* known = tracks_writes_ && !written ? static_cast<uint8_t*>(pages(span)) : nullptr;
  blocks_[at] = {bytes, span, Kind::Own, allocation_count_++, known, Access::All, nullptr};
  used_ += bytes;
  return pointer(at);
}

void DeviceMemory::erase(std::map<uint64_t, AllocationState>::iterator which) {
  AllocationState& block = which->second;
  if (block.written) munmap(block.written, block.span);
  if (block.kind == Kind::Own) {
    const uint64_t page = which->first / kPage * kPage;
    madvise(pointer(page), which->first - page + block.span, MADV_DONTNEED);  // and what is left of the last page
    address_range_->give_back(page);
    used_ -= block.bytes;
  }
  blocks_.erase(which);
  generation_++;
}

bool DeviceMemory::deallocate(void* at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(at));
  if (found == blocks_.end() || found->second.kind != Kind::Own) return false;
  return erase(found), true;
}

bool DeviceMemory::register_host(const void* at, uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  AllocationState block{bytes, bytes, Kind::Host, allocation_count_, nullptr, Access::All, nullptr};
  return blocks_.emplace(reinterpret_cast<uint64_t>(at), std::move(block)).second && ++allocation_count_;
}

bool DeviceMemory::unregister_host(const void* at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(at));
  if (found == blocks_.end() || found->second.kind != Kind::Host) return false;
  return erase(found), true;
}

void DeviceMemory::protect(const void* at) { set_access(reinterpret_cast<uint64_t>(at), Access::Reads); }

void* DeviceMemory::allocate_divided(uint64_t bytes, uint64_t span) {
  void* at = allocate(bytes, span, false, kPage);
  std::lock_guard<std::mutex> hold(lock_);
  if (at) blocks_[reinterpret_cast<uint64_t>(at)].pieces = std::make_unique<std::map<uint64_t, uint64_t>>();
  return at;
}
void DeviceMemory::add_piece(uint64_t in, uint64_t at, uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  AllocationState& block = blocks_.at(in);
  (*block.pieces)[at] = bytes;
  if (block.written) std::memset(block.written + (at - in), 0, bytes);
}
void DeviceMemory::remove_piece(uint64_t in, uint64_t at) {
  std::lock_guard<std::mutex> hold(lock_);
  blocks_.at(in).pieces->erase(at);
  generation_++;
}

uint64_t DeviceMemory::reserve(uint64_t bytes, uint64_t alignment) {
  std::lock_guard<std::mutex> hold(lock_);
  return open() ? address_range_->take(bytes, std::max(alignment, kPage), guard(bytes)) : 0;
}
void DeviceMemory::unreserve(uint64_t at) {
  std::lock_guard<std::mutex> hold(lock_);
  address_range_->give_back(at);
}
bool DeviceMemory::charge(uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  if (bytes > total_ - used_) return false;
  return used_ += bytes, true;
}
void DeviceMemory::discharge(uint64_t bytes) {
  std::lock_guard<std::mutex> hold(lock_);
  used_ -= bytes;
}
bool DeviceMemory::map(uint64_t at, uint64_t bytes, int file, uint64_t offset) {
  std::lock_guard<std::mutex> hold(lock_);
  void* made = mmap(pointer(at), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset));
  if (made == MAP_FAILED) return false;
  blocks_[at] = {bytes, bytes, Kind::Mapped, allocation_count_++, nullptr, Access::None, nullptr};
  return true;
}
void DeviceMemory::unmap(uint64_t at) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = blocks_.find(at);
  pages(found->second.bytes, pointer(at));
  erase(found);
}
void DeviceMemory::set_access(uint64_t at, Access access) {
  std::lock_guard<std::mutex> hold(lock_);
  blocks_.at(at).access = access;
  generation_++;
}

Allocation DeviceMemory::find_locked(uint64_t address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {};
  const auto& [begin, block] = *--next;
  if (address - begin >= block.span || block.access == Access::None) return {};
  uint64_t from = begin, to = begin + block.span;
  if (block.pieces) {
    auto piece = block.pieces->upper_bound(address);
    if (piece == block.pieces->begin() || address - std::prev(piece)->first >= std::prev(piece)->second) return {};
    from = std::prev(piece)->first, to = from + std::prev(piece)->second;
  }
  return {from, to, block.kind != Kind::Host, block.number, begin, block.access};
}

Allocation DeviceMemory::find(uint64_t address) const {
  std::lock_guard<std::mutex> hold(lock_);
  return find_locked(address);
}

bool DeviceMemory::covers(uint64_t at, uint64_t bytes) const {
  std::lock_guard<std::mutex> hold(lock_);
  if (bytes > UINT64_MAX - at) return false;
  for (uint64_t next = at; next < at + bytes;) {
    const Allocation here = find_locked(next);
    if (!here.end) return false;
    next = here.end;
  }
  return true;
}

uint8_t* DeviceMemory::written_at(uint64_t at, uint64_t bytes) const {
  if (!tracks_writes_ || !bytes) return nullptr;
  std::lock_guard<std::mutex> hold(lock_);
  auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  const auto& [begin, block] = *--next;
  return block.written && at + bytes <= begin + block.span ? block.written + (at - begin) : nullptr;
}

uint8_t* DeviceMemory::written_map(const Allocation& of) const { return written_at(of.begin, of.end - of.begin); }

void DeviceMemory::mark_written(uint64_t at, uint64_t bytes) {
  if (uint8_t* known = written_at(at, bytes)) std::memset(known, 1, bytes);
}

void DeviceMemory::propagate_written(uint64_t to, uint64_t from, uint64_t bytes) {
  uint8_t *there = written_at(to, bytes), *here = written_at(from, bytes);
  if (there && here) std::memmove(there, here, bytes);
  else if (there) std::memset(there, 1, bytes);
}

uint64_t DeviceMemory::first_unwritten(uint64_t at, uint64_t bytes) const {
  const uint8_t* known = written_at(at, bytes);
  const void* first = known ? std::memchr(known, 0, bytes) : nullptr;
  return first ? at + static_cast<uint64_t>(static_cast<const uint8_t*>(first) - known) : 0;
}

}  // namespace vgpu
