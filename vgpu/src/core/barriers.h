// The 16 barriers of a block: how many threads have arrived at each, and their votes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace vgpu {

constexpr uint32_t kBarriersPerBlock = 16;

struct Barrier {
  uint32_t arrived = 0, expected = 0;       // threads; expected 0: all that have not exited
  uint32_t true_votes = 0, votes = 0;       // threads whose predicate is true; threads that voted
  bool has_nonwaiting_arrivals = false;     // of threads that arrived without waiting (bar.arrive)
};

class Barriers {
 public:
  void reset() { std::fill(std::begin(barriers_), std::end(barriers_), Barrier()); }
  Barrier& operator[](uint32_t number) { return barriers_[number]; }
  bool is_complete(uint32_t number, uint32_t live_threads) const {
    const Barrier& barrier = barriers_[number];
    return barrier.arrived && barrier.arrived >= (barrier.expected ? barrier.expected : live_threads);
  }
  // Resets a barrier, and returns its state before.
  Barrier exchange_for_new(uint32_t number) {
    Barrier previous = barriers_[number];
    barriers_[number] = Barrier();
    return previous;
  }

 private:
  Barrier barriers_[kBarriersPerBlock];
};

}  // namespace vgpu
