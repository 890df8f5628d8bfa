// The warps of a block that can run, as masks with a bit for each warp.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

class WarpScheduler {
 public:
  void reset(size_t warps) {
    runnable_ = warps == kWarpSize ? kFullMask : (1u << warps) - 1;
    wake_all();
  }

  // Returns the warps that may run next; 0: none can.  Preempted warps run after all others, parked warps after those.
  uint32_t runnable(uint64_t writes) {
    if (parked_at_write_ != writes) parked_ = 0;
    if (uint32_t warps = runnable_ & ~preempted_ & ~parked_) return warps;
    preempted_ = 0;
    if (uint32_t warps = runnable_ & ~parked_) return warps;
    parked_ = 0;
    return runnable_;
  }

  void set_ready(uint32_t warp, bool ready) { runnable_ = ready ? runnable_ | 1u << warp : runnable_ & ~(1u << warp); }
  void preempt(uint32_t warp) { preempted_ |= 1u << warp; }
  // Parks the warp until another write to shared or global memory.  writes: their number so far.
  void park(uint32_t warp, uint64_t writes) {
    if (parked_at_write_ != writes) parked_ = 0, parked_at_write_ = writes;
    parked_ |= 1u << warp;
  }
  void wake_all() { preempted_ = parked_ = 0; }

  bool any_ready() const { return runnable_ != 0; }
  bool all_parked(uint64_t writes) const { return parked_ && !(runnable_ & ~parked_) && parked_at_write_ == writes; }

 private:
  uint32_t runnable_ = 0, preempted_ = 0, parked_ = 0;
  uint64_t parked_at_write_ = 0;
};

}  // namespace vgpu
