// Epochs of a block and clocks of its warps: what barriers put in order.
#include "block_clock.h"

#include <algorithm>

namespace vgpu {

void WarpClock::meet(uint32_t lanes) {
  uint32_t all[kWarpSize] = {};
  for_each_lane(lanes, [&](uint32_t lane) {
    for (uint32_t m = 0; m < kWarpSize; m++) all[m] = std::max(all[m], known[lane][m]);
  });
  clock++;
  for (uint32_t left = lanes; left; left &= left - 1) all[__builtin_ctz(left)] = clock;
  for (uint32_t left = lanes; left; left &= left - 1) std::copy_n(all, kWarpSize, known[__builtin_ctz(left)]);
}

BlockClock& BlockClocks::of(const WarpContext& warp) {
  if (recent_ && recent_shared_ == warp.shared && recent_->number == warp.block) return *recent_;
  BlockClock& found = blocks_[warp.shared];
  if (found.number != warp.block) {
    found = BlockClock();
    found.number = warp.block;
    found.warps.resize((warp.threads + kWarpSize - 1) / kWarpSize);
    found.shared.resize((warp.shared_bytes + kLineBytes - 1) / kLineBytes);
    found.shared_written.resize(warp.shared_bytes);
  }
  recent_shared_ = warp.shared, recent_ = &found;
  return found;
}

}  // namespace vgpu
