// Clocks of a block and its warps, which count barriers and warp synchronizations, and the shadow of its shared memory.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "core/lanes.h"
#include "core/warp_context.h"
#include "shadow.h"
#include "unspecified_values.h"

namespace vgpu {

// known[l][m]: what lane m did before this clock happens before what lane l does next.
// lockstep_clock: what any lane did before this clock happens before what each lane does next, by lockstep.
struct WarpClock {
  uint32_t clock = 0, lockstep_clock = 0;
  uint32_t known[kWarpSize][kWarpSize] = {};
  void synchronize(uint32_t lanes);
};

struct BlockClock {
  uint32_t number = ~0u, epoch = 0;  // of the block; number of its barriers so far
  std::vector<std::unique_ptr<WarpClock>> warps;  // created at a warp's first synchronization
  std::vector<ShadowLine> shared;
  std::vector<uint8_t> shared_written;  // a bit for each byte (core/written_bytes.h)
  std::vector<UnspecifiedValues> unspecified;  // of each warp
};

// The clocks of the resident blocks, by the address of their shared memory.
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
