// An allocator of addresses from a range.  A guard gap follows each allocation, so that accesses beyond its end are detected.
// Freed addresses are reused as late as possible, so that accesses to freed memory are detected, too.
#pragma once
#include <cstdint>
#include <map>

namespace vgpu {

class AddressRange {
 public:
  AddressRange(uint64_t begin, uint64_t end) : begin_(begin), end_(end), next_(begin) {}

  // Returns 0 if there is no room.  guard: bytes behind the allocation that stay unused.
  uint64_t allocate(uint64_t bytes, uint64_t alignment, uint64_t guard) {
    return allocate_from(next_, bytes, alignment, guard);
  }
  // Allocates the first gap at or behind `start`, or else the first one of the range.
  uint64_t allocate_from(uint64_t start, uint64_t bytes, uint64_t alignment, uint64_t guard);
  void deallocate(uint64_t address) { allocated_.erase(address); }

 private:
  uint64_t find_gap(uint64_t start, uint64_t bytes, uint64_t alignment) const;

  uint64_t begin_, end_;
  uint64_t next_;                       // where the next search begins: behind the latest allocation
  std::map<uint64_t, uint64_t> allocated_;  // begin to end, guard included
};

}  // namespace vgpu
