// The heap of device-side malloc and free.
#include "device_heap.h"

#include <algorithm>

namespace vgpu {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kSpan = 16;  // addresses for each byte: pieces lie apart, and are given out again late
constexpr uint64_t kLeastGuard = 64, kMaxGuard = 4096;

bool DeviceHeap::resize(uint64_t bytes) {
  if (at_) return bytes == bytes_;
  return bytes_ = bytes, true;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (!at_) {
    at_ = reinterpret_cast<uint64_t>(memory_.allocate_divided(bytes_, kSpan * bytes_));
    if (!at_) return 0;
    address_range_ = std::make_unique<AddressRange>(at_, at_ + kSpan * bytes_);
  }
  if (!bytes || bytes > bytes_) return 0;
  const uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (whole > bytes_ - used_) return 0;
  const uint64_t at = address_range_->take(whole, kAlignment, std::clamp(whole, kLeastGuard, kMaxGuard));
  if (!at) return 0;
  memory_.add_piece(at_, at, bytes);
  return used_ += allocated_[at] = whole, at;
}

bool DeviceHeap::deallocate(uint64_t at) {
  auto found = allocated_.find(at);
  if (found == allocated_.end()) return false;
  memory_.remove_piece(at_, at);
  address_range_->give_back(at);
  used_ -= found->second;
  return allocated_.erase(found), true;
}

}  // namespace vgpu
