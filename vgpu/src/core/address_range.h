// Places in a range of addresses.  Behind each lies room that is nobody's, so that an access beyond its end is seen, and what
// is given back is given out again as late as can be, so that an access to what is no more is seen, too.
#pragma once
#include <cstdint>
#include <map>

namespace vgpu {

class AddressRange {
 public:
  AddressRange(uint64_t begin, uint64_t end) : begin_(begin), end_(end), next_(begin) {}

  // 0: there is no room.  guard: bytes behind it that stay free.
  uint64_t take(uint64_t bytes, uint64_t alignment, uint64_t guard) { return take_behind(next_, bytes, alignment, guard); }
  // The first place behind `from`, or else from the beginning on.
  uint64_t take_behind(uint64_t from, uint64_t bytes, uint64_t alignment, uint64_t guard);
  void give_back(uint64_t at) { allocated_.erase(at); }

 private:
  uint64_t search(uint64_t from, uint64_t bytes, uint64_t alignment) const;

  uint64_t begin_, end_;
  uint64_t next_;                       // where the search begins: behind what was given out last
  std::map<uint64_t, uint64_t> allocated_;  // address: end, with the guard
};

}  // namespace vgpu
