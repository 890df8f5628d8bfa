// A block's time: how many barriers all of it has met at, and how often the lanes of each warp have met; and what its shared
// memory has seen.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "core/lanes.h"
#include "core/warp_context.h"
#include "shadow.h"

namespace vgpu {

// known[l][m]: the clock before which all that lane m did is before lane l.
// everyone: the clock before which all that the warp did is before each lane, by lockstep.
struct WarpClock {
  uint32_t clock = 0, everyone = 0;
  uint32_t known[kWarpSize][kWarpSize] = {};
  void meet(uint32_t lanes);
};

struct BlockClock {
  uint32_t number = ~0u, epoch = 0;
  std::vector<std::unique_ptr<WarpClock>> warps;  // made when a warp first meets
  std::vector<ShadowLine> shared;
  std::vector<uint8_t> shared_written;  // a byte for each
};

// Of the blocks in flight, whose shared memory lies at different places.
class BlockClocks {
 public:
  void clear() { blocks_.clear(), recent_ = nullptr; }
  BlockClock& of(const WarpContext& warp);

 private:
  std::map<const uint8_t*, BlockClock> blocks_;
  const uint8_t* recent_shared_ = nullptr;
  BlockClock* recent_ = nullptr;
};

}  // namespace vgpu
