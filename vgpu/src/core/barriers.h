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
  void reset() { std::fill(std::begin(barriers_), std::end(barriers_), Barrier()), used_ = 0; }
  Barrier& operator[](uint32_t number) { return used_ |= 1u << number, barriers_[number]; }
  uint32_t used() const { return used_; }  // the mask of those at which threads may have arrived
  bool is_complete(uint32_t number, uint32_t live_threads) const {
    const Barrier& barrier = barriers_[number];
    return barrier.arrived && barrier.arrived >= (barrier.expected ? barrier.expected : live_threads);
  }
  // Resets a barrier, and returns its state before.
  Barrier exchange_for_new(uint32_t number) {
    Barrier previous = barriers_[number];
    barriers_[number] = Barrier(), used_ &= ~(1u << number);
    return previous;
  }

 private:
  Barrier barriers_[kBarriersPerBlock];
  uint32_t used_ = 0;
};

}  // namespace vgpu
