// The heap of device-side malloc and free.
#include "device_heap.h"

#include <algorithm>

namespace vgpu {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kSpan =
    16;  // address space per byte, so that allocations have gaps between them and addresses are reused late
constexpr uint64_t kMinGuard = 64, kMaxGuard = 4096;  // bytes of the gap behind an allocation

bool DeviceHeap::resize(uint64_t bytes) {
  if (begin_) return bytes == bytes_;
  return bytes_ = bytes, true;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (!begin_) {
    begin_ = reinterpret_cast<uint64_t>(memory_.allocate_in_pieces(bytes_, kSpan * bytes_));
    if (!begin_) return 0;
    address_range_ = std::make_unique<AddressRange>(begin_, begin_ + kSpan * bytes_);
  }
  if (!bytes || bytes > bytes_) return 0;
  const uint64_t aligned_bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (aligned_bytes > bytes_ - used_) return 0;
  const uint64_t address = address_range_->allocate(aligned_bytes, kAlignment, std::clamp(aligned_bytes, kMinGuard, kMaxGuard));
  if (!address) return 0;
  memory_.add_piece(begin_, address, bytes);
  return used_ += allocated_[address] = aligned_bytes, address;
}

bool DeviceHeap::deallocate(uint64_t address) {
  auto allocation = allocated_.find(address);
  if (allocation == allocated_.end()) return false;
  memory_.remove_piece(begin_, address);
  address_range_->deallocate(address);
  used_ -= allocation->second;
  return allocated_.erase(allocation), true;
}

}  // namespace vgpu
