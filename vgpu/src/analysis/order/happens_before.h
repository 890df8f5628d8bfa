// Rule 1, happens-before: which accesses come before which in every schedule.
//
// What it accepts: program order of one thread; barriers at which all of a block's living threads meet and wait; bar.warp.sync;
// the order of operations on streams (stream_order.h); of machine code, whatever lanes of a warp that are surely together did
// (core/convergence.h), for its compiler leaves out a warp's barriers there.  Why that is sound: these are the orders that CUDA's model guarantees
// whatever runs first.  Fences, flags, locks, shuffles and votes count for nothing: their direction is a schedule's choice.
// Example: `s[t] = x; __syncthreads(); y = s[t ^ 1];`.
#pragma once
#include <cstdint>

#include "stream_order.h"

namespace vgpu {

// Lanes of one warp that each come to a place of their own of a line: which lane to which of its 32 words.
constexpr uint8_t kOneThread = 0xff;  // one thread comes to all of them

// Who accesses now.
struct Accessor {
  StreamOrder::Operation operation = 0;
  uint32_t block = 0, epoch = 0;  // the block's barriers until now
  uint32_t clock = 0;  // the warp's synchronizations until now
  uint32_t everyone = 0;  // the clock before which all of the warp is before this lane
  uint16_t warp = 0;
  uint8_t lane = 0;
  uint8_t pattern = 0;  // where one stands for the lanes of a line
  const uint32_t* synchronized = nullptr;  // of each lane, the clock before which all of it is before this lane; nullptr: none
};

// Those who accessed a place, as far as it matters for who comes later.  Of a block its last epoch is enough: whoever comes
// after that comes after the earlier ones.
struct Accessors {
  enum Extent : uint8_t { None, Warp, Block, Grid } extent = None;
  uint8_t pattern = 0;
  uint16_t warp = 0;
  StreamOrder::Operation operation = 0;
  uint32_t block = 0, epoch = 0, clock = 0, lanes = 0;  // lanes of the warp that came last
  bool is_of(const Accessor& now) const {
    return operation == now.operation && block == now.block && epoch == now.epoch && warp == now.warp;
  }
};

class HappensBefore {
 public:
  explicit HappensBefore(StreamOrder& order) : order_(order) {}

  void begin_operation();  // the current one is another
  bool is_before(const Accessors& all, const Accessor& now);  // all of them
  // What is before the newcomer is before whoever comes after it.
  void add(Accessors& to, const Accessor& now) { to = is_before(to, now) ? one(now) : unite(to, one(now)); }
  Accessors unite(const Accessors& one, const Accessors& other);
  bool is_earlier_operation(StreamOrder::Operation one, const Accessor& now) {
    return one != now.operation && operation_is_before(one);
  }
  static Accessors one(const Accessor& now) {
    return {Accessors::Warp, now.pattern, now.warp, now.operation, now.block, now.epoch, now.clock, 1u << now.lane};
  }

 private:
  struct Answer {
    StreamOrder::Operation operation = 0;
    bool before = false;
  };
  bool operation_is_before(StreamOrder::Operation one);

  StreamOrder& order_;
  static constexpr uint32_t kAnswers = 16;
  Answer answers_[kAnswers];  // of the current operation
};

}  // namespace vgpu
