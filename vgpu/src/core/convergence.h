// The lanes of a warp that are converged in every schedule: branches split them, and synchronization joins them.  Lanes that
// merely reach the same program counter in this schedule do not count as converged.
#pragma once
#include "lanes.h"

namespace vgpu {

struct Convergence {
  uint32_t live = 0;
  uint32_t exited_diverged = 0;           // lanes that exited while they were not converged with all live lanes
  uint32_t converged[kWarpSize] = {};  // for each live lane, the mask of lanes converged with it, itself included

  void reset(uint32_t lanes);
  void diverge(uint32_t lanes);  // splits these lanes from all others
  void reconverge(uint32_t lanes);
  void exit_lanes(uint32_t lanes);
  bool is_fully_converged(uint32_t lane) const { return converged[lane] == live; }
  uint32_t lanes_converged_with(uint32_t mask) const { return converged[__builtin_ctz(mask)]; }  // with its first lane
};

}  // namespace vgpu
