// Which warps of a block may go on: a bit for each.
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

  // Those of which one may go on now; 0: none can.  Who was preempted comes after all others, who is parked after those.
  uint32_t runnable(uint64_t writes) {
    if (parked_at_write_ != writes) parked_ = 0;
    if (uint32_t found = runnable_ & ~preempted_ & ~parked_) return found;
    preempted_ = 0;
    if (uint32_t found = runnable_ & ~parked_) return found;
    parked_ = 0;
    return runnable_;
  }

  void set_ready(uint32_t warp, bool ready) { runnable_ = ready ? runnable_ | 1u << warp : runnable_ & ~(1u << warp); }
  void preempt(uint32_t warp) { preempted_ |= 1u << warp; }
  // Until memory that others see is written once more.
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
