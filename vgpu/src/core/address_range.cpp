// Reserves the address range of the device, and chooses where allocations lie in it.
#include "address_range.h"

#include <algorithm>
#include <iterator>

namespace vgpu {

uint64_t AddressRange::search(uint64_t from, uint64_t bytes, uint64_t alignment) const {
  for (uint64_t at = from;;) {
    at = (at + alignment - 1) / alignment * alignment;
    if (at > end_ || end_ - at < bytes) return 0;
    auto next = allocated_.lower_bound(at + bytes);
    if (next == allocated_.begin() || std::prev(next)->second <= at) return at;
    at = std::prev(next)->second;
  }
}

uint64_t AddressRange::take_behind(uint64_t from, uint64_t bytes, uint64_t alignment, uint64_t guard) {
  if (!bytes || bytes > end_ - begin_) return 0;
  const uint64_t whole = std::min(bytes + guard, end_ - begin_);
  uint64_t at = search(std::max(from, begin_), whole, alignment);
  if (!at) at = search(begin_, whole, alignment);
  if (!at) at = search(begin_, bytes, alignment);  // better without a guard than not at all
  if (at) next_ = allocated_[at] = std::min(at + whole, end_);
  return at;
}

}  // namespace vgpu
