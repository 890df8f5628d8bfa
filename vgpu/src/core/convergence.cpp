// Tracks the sets of lanes that are converged in every schedule.  Code relies on the exact lanes of a confirmed set
// (convergence.h); a set that is split loses its confirmation.
#include "convergence.h"

namespace vgpu {

void Convergence::reset(uint32_t lanes) {
  live = lanes, exited_diverged = confirmed = 0;
  for (uint32_t& mask : converged) mask = lanes;
}

void Convergence::diverge(uint32_t lanes) {
  for_each_lane(lanes & confirmed, [=](uint32_t l) { confirmed &= converged[l] & ~lanes ? ~converged[l] : kFullMask; });
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) converged[l] &= lanes >> l & 1 ? lanes : ~lanes;
}

void Convergence::separate(uint32_t lanes) {
  diverge(lanes);
  for_each_lane(lanes, [=](uint32_t l) {
    if (converged[l] != 1u << l) confirmed &= ~converged[l];
    converged[l] = 1u << l;
  });
}

void Convergence::reconverge(uint32_t lanes) {
  for_each_lane(lanes, [=](uint32_t l) { converged[l] = lanes; });
}

void Convergence::exit_lanes(uint32_t lanes) {
  exited_diverged |= lanes & lanes_where([=](uint32_t l) { return converged[l] != live; });
  live &= ~lanes;
  diverge(lanes);
}

}  // namespace vgpu
