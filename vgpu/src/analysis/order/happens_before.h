// Rule 1, happens-before: which accesses are ordered in every schedule.
//
// What it accepts: program order of one thread; barriers at which all of a block's living threads meet and wait; bar.warp.sync;
// the order of operations on streams (stream_order.h); in machine code, the order of instructions of converged lanes
// (core/convergence.h), since ptxas leaves out bar.warp.sync there.  Why that is sound: CUDA's model guarantees these orders in
// every schedule.  Fences, flags, locks, shuffles and votes order nothing: the schedule decides their direction.
// Example: `s[t] = x; __syncthreads(); y = s[t ^ 1];`.
#pragma once
#include <cstdint>

#include "stream_order.h"

namespace vgpu {

// Accessor::pattern says which lane of a warp accesses which of the 32 words of a line (line_pattern() in shadow.h).
constexpr uint8_t kOneThread = 0xff;  // the pattern of one thread that accesses all words

// The thread that performs an access, and its clocks.
struct Accessor {
  StreamOrder::Operation operation = 0;
  uint32_t block = 0, epoch = 0;  // number of the block's barriers so far
  uint32_t clock = 0;  // number of the warp's synchronizations so far
  uint32_t lockstep_clock = 0;  // what any lane did before this clock is before what this lane does next (WarpClock)
  uint16_t warp = 0;
  uint8_t lane = 0;
  uint8_t pattern = 0;  // if this lane stands for all lanes that access a line
  // For each lane m of the warp, a clock: what m did before it is before what this lane does next.  nullptr: all are zero.
  const uint32_t* synchronized = nullptr;
};

// A summary of the threads that have accessed a location.  Of each block only the last epoch is kept: what is ordered after it
// is ordered after the earlier ones, too.
struct AccessorSummary {
  // Whose threads they are: one warp's, one block's, or any of the operation, which may be a set of several.
  enum Extent : uint8_t { None, Warp, Block, Grid } extent = None;
  uint8_t pattern = 0;
  uint16_t warp = 0;
  StreamOrder::Operation operation = 0;
  uint32_t block = 0, epoch = 0, clock = 0, lanes = 0;  // clock and lanes of the warp's last accesses
  bool is_of(const Accessor& now) const {
    return operation == now.operation && block == now.block && epoch == now.epoch && warp == now.warp;
  }
};

class HappensBefore {
 public:
  explicit HappensBefore(StreamOrder& order) : order_(order) {}

  void begin_operation();  // the current operation has changed
  bool is_before(const AccessorSummary& accessors, const Accessor& now);  // whether all of them are
  // Adds an accessor; those that are before it are dropped, as what is ordered after it is ordered after them.
  void add(AccessorSummary& accessors, const Accessor& now) {
    accessors = is_before(accessors, now) ? single(now) : unite(accessors, single(now));
  }
  AccessorSummary unite(const AccessorSummary& first, const AccessorSummary& second);
  bool is_earlier_operation(StreamOrder::Operation operation, const Accessor& now) {
    return operation != now.operation && operation_is_before(operation);
  }
  static AccessorSummary single(const Accessor& now) {
    return {AccessorSummary::Warp, now.pattern, now.warp, now.operation, now.block, now.epoch, now.clock, 1u << now.lane};
  }

 private:
  struct CachedOrder {
    StreamOrder::Operation operation = 0;
    bool is_before = false;
  };
  bool operation_is_before(StreamOrder::Operation operation);

  StreamOrder& order_;
  static constexpr uint32_t kCacheSize = 16;
  CachedOrder cache_[kCacheSize];  // for the current operation
};

}  // namespace vgpu
