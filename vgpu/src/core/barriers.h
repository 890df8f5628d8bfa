// The barriers of a block: who has come to each, and what the threads have voted.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace vgpu {

constexpr uint32_t kBarriersPerBlock = 16;

struct Barrier {
  uint32_t arrived = 0, expected = 0;  // threads; 0: all that live
  uint32_t holding = 0, votes = 0;     // those whose predicate holds, of those that gave one
  bool some_only_arrived = false;      // and did not wait
};

class Barriers {
 public:
  void reset() { std::fill(std::begin(all_), std::end(all_), Barrier()); }
  Barrier& operator[](uint32_t which) { return all_[which]; }
  bool is_complete(uint32_t which, uint32_t live_threads) const {
    const Barrier& one = all_[which];
    return one.arrived && one.arrived >= (one.expected ? one.expected : live_threads);
  }
  // As it was; it begins anew.
  Barrier take(uint32_t which) {
    Barrier was = all_[which];
    all_[which] = Barrier();
    return was;
  }

 private:
  Barrier all_[kBarriersPerBlock];
};

}  // namespace vgpu
