// Atomics that let another one at their address go first: each lane's is a choice, and waits until one was done there.  So
// the order of two neighbours can change, and nothing else need; before several that wait, one goes past them all.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace vgpu {

struct Lanes;
class Schedule;

class Holding {
 public:
  struct One { uint64_t came; uint32_t block, warp, lane; };

  explicit Holding(Schedule& schedule) : schedule_(schedule) {}

  // Which of `count` lanes in their `order` come now; how many.  The others are w.held, and w.later: behind one after
  // which somebody else is next.
  uint32_t come(Lanes& w, uint8_t* const* at, uint8_t* order, uint32_t count);

  bool any() const { return !waiting_.empty(); }
  const One* next() const { return next_.empty() ? nullptr : &next_.front(); }  // whose turn it is before all others
  One take();
  void release();  // all: nobody else can go on

 private:
  bool done(const uint8_t* at);

  Schedule& schedule_;
  std::unordered_map<const uint8_t*, std::vector<One>> waiting_;  // at each address, in the order in which they came
  std::deque<One> next_;
  uint64_t came_ = 0;
};

}  // namespace vgpu
