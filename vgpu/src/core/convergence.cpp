// Keeps the sets of lanes that are surely together.
#include "convergence.h"

namespace vgpu {

void Convergence::reset(uint32_t lanes) {
  live = lanes, ended_apart = 0;
  for (uint32_t& mates : together) mates = lanes;
}

void Convergence::diverge(uint32_t lanes) {
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) together[l] &= lanes >> l & 1 ? lanes : ~lanes;
}

void Convergence::meet(uint32_t lanes) {
  for_each_lane(lanes, [=](uint32_t l) { together[l] = lanes; });
}

void Convergence::end(uint32_t lanes) {
  for_each_lane(lanes, [=](uint32_t l) { ended_apart |= uint32_t(together[l] != live) << l; });
  live &= ~lanes;
  diverge(lanes);
}

}  // namespace vgpu
