// The lanes of a warp that are converged in every schedule: branches split them, and synchronization joins them.  Lanes that
// merely reach the same program counter in this schedule do not count as converged.
//
// A confirmed set of converged lanes has been joined by a WARPSYNC, or found converged by a BRA.DIV, and has not been split since:
// code that follows relies on exactly these lanes being active, as __ballot_sync() does.  Elsewhere, the result of a vote among
// only some of the live lanes is that of __activemask(), which CUDA leaves open.
#pragma once
#include "lanes.h"

namespace vgpu {

struct Convergence {
  uint32_t live = 0;
  uint32_t exited_diverged = 0;  // lanes that exited while they were not converged with all live lanes
  uint32_t converged[kWarpSize] = {};  // for each live lane, the mask of lanes converged with it, itself included
  uint32_t confirmed = 0;  // the lanes of confirmed sets

  void reset(uint32_t lanes);
  void diverge(uint32_t lanes);  // splits these lanes from all others
  void separate(uint32_t lanes);  // splits each of these lanes from all others
  void reconverge(uint32_t lanes);
  void confirm(uint32_t lanes) { confirmed |= lanes; }  // a set of converged lanes
  void exit_lanes(uint32_t lanes);
  bool is_fully_converged(uint32_t lane) const { return converged[lane] == live; }
  bool is_confirmed_set(uint32_t lanes) const { return lanes_converged_with(lanes) == lanes && !(lanes & ~confirmed); }
  uint32_t lanes_converged_with(uint32_t mask) const { return converged[__builtin_ctz(mask)]; }  // with its first lane
};

}  // namespace vgpu
