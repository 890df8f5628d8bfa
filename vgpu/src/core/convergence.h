// Which lanes of a warp are together in every schedule: they part where a branch parts them, and come together where they wait
// for each other.  Groups that meet by chance are more than that.
#pragma once
#include "lanes.h"

namespace vgpu {

struct Convergence {
  uint32_t live = 0;
  uint32_t ended_apart = 0;  // lanes that ended when others that live were elsewhere
  uint32_t together[kWarpSize] = {};  // of each lane that lives, those with it, itself among them

  void reset(uint32_t lanes);
  void diverge(uint32_t lanes);  // these from all others
  void meet(uint32_t lanes);
  void end(uint32_t lanes);
  bool has_all(uint32_t lane) const { return together[lane] == live; }
  uint32_t mates(uint32_t mask) const { return together[__builtin_ctz(mask)]; }  // of the first of these lanes
};

}  // namespace vgpu
