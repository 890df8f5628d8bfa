// First-fit search for gaps in a range of addresses.  guard: bytes behind an allocation that stay unused, see the header.
#include "address_range.h"

#include <algorithm>
#include <iterator>

namespace vgpu {

uint64_t AddressRange::find_gap(uint64_t start, uint64_t bytes, uint64_t alignment) const {
  for (uint64_t address = start;;) {
    address = (address + alignment - 1) / alignment * alignment;
    if (address > end_ || end_ - address < bytes) return 0;
    auto next = allocated_.lower_bound(address + bytes);
    if (next == allocated_.begin() || std::prev(next)->second <= address) return address;
    address = std::prev(next)->second;
  }
}

uint64_t AddressRange::allocate_from(uint64_t start, uint64_t bytes, uint64_t alignment, uint64_t guard) {
  if (!bytes || bytes > end_ - begin_) return 0;
  const uint64_t guarded_bytes = std::min(bytes + guard, end_ - begin_);
  uint64_t address = find_gap(std::max(start, begin_), guarded_bytes, alignment);
  if (!address) address = find_gap(begin_, guarded_bytes, alignment);
  if (!address) address = find_gap(begin_, bytes, alignment);  // the last resort: no guard
  if (address) next_ = allocated_[address] = std::min(address + guarded_bytes, end_);
  return address;
}

}  // namespace vgpu
