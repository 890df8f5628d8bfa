// Clocks of warps, and the clocks of each resident block.
#include "block_clock.h"

#include <algorithm>

namespace vgpu {

void WarpClock::synchronize(uint32_t lanes) {
  uint32_t joined[kWarpSize] = {};
  for_each_lane(lanes, [&](uint32_t lane) {
    for (uint32_t m = 0; m < kWarpSize; m++) joined[m] = std::max(joined[m], known[lane][m]);
  });
  clock++;
  for (uint32_t remaining = lanes; remaining; remaining &= remaining - 1) joined[__builtin_ctz(remaining)] = clock;
  for (uint32_t remaining = lanes; remaining; remaining &= remaining - 1)
    std::copy_n(joined, kWarpSize, known[__builtin_ctz(remaining)]);
}

BlockClock& BlockClocks::of(const WarpContext& warp) {
  if (recent_ && recent_shared_ == warp.shared && recent_->number == warp.block) return *recent_;
  BlockClock& block = blocks_[warp.shared];
  if (block.number != warp.block) {
    block = BlockClock();
    block.number = warp.block;
    block.warps.resize((warp.threads + kWarpSize - 1) / kWarpSize);
    block.unspecified.resize(block.warps.size());
    block.shared.resize((warp.shared_bytes + kLineBytes - 1) / kLineBytes);
    block.shared_written.resize(bytes_of_map(warp.shared_bytes));
  }
  recent_shared_ = warp.shared, recent_ = &block;
  return block;
}

}  // namespace vgpu
