// Device memory: allocations with guard gaps, late reuse of freed addresses, and tracking of written bytes.
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace vgpu {
namespace {

constexpr uint64_t kMaxRange = 1ull << 43, kRangePerByte = 256;  // addresses to reserve: at most, and for each byte of memory
constexpr uint64_t kMinGuard = 256 << 10, kMaxGuard = 256 << 20;

// Maps zeroed pages, which use no memory before they are accessed; nullptr on failure.
void* map_zero_pages(uint64_t bytes, void* address = nullptr) {
  const int fixed_flag = address ? MAP_FIXED : 0;
  void* mapping = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed_flag, -1, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

// Returns the size of the gap behind an allocation: as large as itself, so that an index twice too large is detected.
uint64_t guard_bytes(uint64_t bytes) { return std::clamp(bytes, kMinGuard, kMaxGuard); }
void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

DeviceMemory::DeviceMemory(uint64_t total, std::optional<uint64_t> placement) : total_(total) {
  if (placement) placement_.emplace(*placement);
}

DeviceMemory::~DeviceMemory() {
  for (auto& [address, block] : blocks_)
    if (block.written) munmap(block.written, bytes_of_map(block.span));
  if (range_) munmap(pointer(range_), range_bytes_);
}

// Reserves the address range, as large as the system permits.
bool DeviceMemory::reserve_range() {
  if (address_range_) return true;
  for (uint64_t bytes = std::min(std::max(total_, uint64_t(1) << 30) * kRangePerByte, kMaxRange); bytes >= total_; bytes /= 2) {
    void* mapping = map_zero_pages(bytes);
    if (!mapping) continue;
    madvise(mapping, bytes, MADV_NOHUGEPAGE);  // a huge page for each of the scattered allocations would waste memory
    range_ = reinterpret_cast<uint64_t>(mapping), range_bytes_ = bytes;
    address_range_ = std::make_unique<AddressRange>(range_ + kPage, range_ + bytes);
    return true;
  }
  return false;
}

// Chooses pages that no other allocation uses.  With a placement seed they lie anywhere in the range, and the first byte lies
// anywhere in the first page.  span: bytes of addresses; of an allocation in pieces they exceed the bytes of memory.
uint64_t DeviceMemory::choose_address(uint64_t span, uint64_t alignment) {
  const auto round_to_pages = [](uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  if (!placement_) return address_range_->allocate(round_to_pages(span), kPage, guard_bytes(round_to_pages(span)));
  const uint64_t pages = range_bytes_ / kPage;
  const uint64_t start = range_ + placement_->next() % pages * kPage;
  const uint64_t offset = placement_->next_below(static_cast<uint32_t>(kPage / alignment)) * alignment;
  const uint64_t bytes = round_to_pages(offset + span);
  const uint64_t address = address_range_->allocate_from(start, bytes, kPage, guard_bytes(bytes));
  return address ? address + offset : 0;
}

void* DeviceMemory::allocate(uint64_t bytes, uint64_t span, bool written, uint64_t alignment) {
  std::lock_guard<std::mutex> guard(lock_);
  if (bytes == 0 || bytes > total_ || used_ + bytes > total_ || !reserve_range()) return nullptr;
  const uint64_t address = choose_address(span, alignment);
  if (!address) return nullptr;
  uint8_t* written_map = tracks_writes_ && !written ? static_cast<uint8_t*>(map_zero_pages(bytes_of_map(span))) : nullptr;
  blocks_[address] = {bytes, span, Kind::Own, allocation_count_++, written_map, Access::ReadWrite, nullptr};
  used_ += bytes;
  return pointer(address);
}

void DeviceMemory::erase(std::map<uint64_t, AllocationState>::iterator block) {
  AllocationState& state = block->second;
  if (state.written) munmap(state.written, bytes_of_map(state.span));
  if (state.kind == Kind::Own) {
    const uint64_t page = block->first / kPage * kPage;
    madvise(pointer(page), block->first - page + state.span, MADV_DONTNEED);  // also the rest of the last page
    address_range_->deallocate(page);
    used_ -= state.bytes;
  }
  blocks_.erase(block);
  generation_++;  // warps keep found allocations only while it stays the same
}

bool DeviceMemory::deallocate(void* address) {
  std::lock_guard<std::mutex> guard(lock_);
  auto block = blocks_.find(reinterpret_cast<uint64_t>(address));
  if (block == blocks_.end() || block->second.kind != Kind::Own) return false;
  return erase(block), true;
}

bool DeviceMemory::register_host(const void* address, uint64_t bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  AllocationState block{bytes, bytes, Kind::Host, allocation_count_, nullptr, Access::ReadWrite, nullptr};
  return blocks_.emplace(reinterpret_cast<uint64_t>(address), std::move(block)).second && ++allocation_count_;
}

bool DeviceMemory::unregister_host(const void* address) {
  std::lock_guard<std::mutex> guard(lock_);
  auto block = blocks_.find(reinterpret_cast<uint64_t>(address));
  if (block == blocks_.end() || block->second.kind != Kind::Host) return false;
  return erase(block), true;
}

void DeviceMemory::protect(const void* address) { set_access(reinterpret_cast<uint64_t>(address), Access::ReadOnly); }

void* DeviceMemory::allocate_in_pieces(uint64_t bytes, uint64_t span) {
  void* address = allocate(bytes, span, false, kPage);
  std::lock_guard<std::mutex> guard(lock_);
  if (address) blocks_[reinterpret_cast<uint64_t>(address)].pieces = std::make_unique<std::map<uint64_t, uint64_t>>();
  return address;
}
void DeviceMemory::add_piece(uint64_t allocation, uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  AllocationState& block = blocks_.at(allocation);
  (*block.pieces)[address] = bytes;
  set_unwritten({block.written, address - allocation}, bytes);
}
void DeviceMemory::remove_piece(uint64_t allocation, uint64_t address) {
  std::lock_guard<std::mutex> guard(lock_);
  blocks_.at(allocation).pieces->erase(address);
  generation_++;
}

uint64_t DeviceMemory::reserve(uint64_t bytes, uint64_t alignment) {
  std::lock_guard<std::mutex> guard(lock_);
  return reserve_range() ? address_range_->allocate(bytes, std::max(alignment, kPage), guard_bytes(bytes)) : 0;
}
void DeviceMemory::unreserve(uint64_t address) {
  std::lock_guard<std::mutex> guard(lock_);
  address_range_->deallocate(address);
}
bool DeviceMemory::count_used(uint64_t bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  if (bytes > total_ - used_) return false;
  return used_ += bytes, true;
}
void DeviceMemory::count_freed(uint64_t bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  used_ -= bytes;
}
bool DeviceMemory::map(uint64_t address, uint64_t bytes, int file, uint64_t offset) {
  std::lock_guard<std::mutex> guard(lock_);
  void* mapping =
      mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset));
  if (mapping == MAP_FAILED) return false;
  blocks_[address] = {bytes, bytes, Kind::Mapped, allocation_count_++, nullptr, Access::None, nullptr};
  return true;
}
void DeviceMemory::unmap(uint64_t address) {
  std::lock_guard<std::mutex> guard(lock_);
  auto block = blocks_.find(address);
  map_zero_pages(block->second.bytes, pointer(address));
  erase(block);
}
void DeviceMemory::set_access(uint64_t address, Access access) {
  std::lock_guard<std::mutex> guard(lock_);
  blocks_.at(address).access = access;
  generation_++;
}

Allocation DeviceMemory::find_locked(uint64_t address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {};
  const auto& [begin, block] = *--next;
  if (address - begin >= block.span || block.access == Access::None) return {};
  uint64_t low = begin, high = begin + block.span;
  if (block.pieces) {
    auto piece = block.pieces->upper_bound(address);
    if (piece == block.pieces->begin() || address - std::prev(piece)->first >= std::prev(piece)->second) return {};
    low = std::prev(piece)->first, high = low + std::prev(piece)->second;
  }
  return {low, high, block.kind != Kind::Host, block.number, begin, block.access};
}

Allocation DeviceMemory::find(uint64_t address) const {
  std::lock_guard<std::mutex> guard(lock_);
  return find_locked(address);
}

bool DeviceMemory::covers(uint64_t address, uint64_t bytes) const {
  std::lock_guard<std::mutex> guard(lock_);
  if (bytes > UINT64_MAX - address) return false;
  for (uint64_t next = address; next < address + bytes;) {
    const Allocation allocation = find_locked(next);
    if (!allocation.end) return false;
    next = allocation.end;
  }
  return true;
}

WrittenBytes DeviceMemory::written_at(uint64_t address, uint64_t bytes) const {
  if (!tracks_writes_ || !bytes) return {};
  std::lock_guard<std::mutex> guard(lock_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {};
  const auto& [begin, block] = *--next;
  if (!block.written || address + bytes > begin + block.span) return {};
  return {block.written, address - begin};
}

WrittenBytes DeviceMemory::written_map(const Allocation& allocation) const {
  return written_at(allocation.begin, allocation.end - allocation.begin);
}

void DeviceMemory::mark_written(uint64_t address, uint64_t bytes) {
  if (const WrittenBytes written = written_at(address, bytes)) set_written(written, bytes);
}

void DeviceMemory::propagate_written(uint64_t to, uint64_t from, uint64_t bytes) {
  const WrittenBytes written_to = written_at(to, bytes), written_from = written_at(from, bytes);
  if (written_to && written_from) copy_written(written_to, written_from, bytes);
  else if (written_to) set_written(written_to, bytes);
}

uint64_t DeviceMemory::first_unwritten(uint64_t address, uint64_t bytes) const {
  const uint64_t number = vgpu::first_unwritten(written_at(address, bytes), bytes);
  return number < bytes ? address + number : 0;
}

}  // namespace vgpu
