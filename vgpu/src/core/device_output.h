// What a kernel says by printf: its format and arguments lie in the device's memory.
#pragma once
#include <cstdint>
#include <string>

#include "lanes.h"
#include "schedule.h"
#include "warp_context.h"

namespace vgpu {

// Where a lane's generic address lies in this process: an instruction set may have addresses of its own for a lane's memory.
using ToHostAddress = uint64_t (*)(const WarpContext& warp, uint32_t lane, uint64_t address);

// To standard output at once; how many fields.  What may not be read is a fault of the launch.
int32_t print_formatted(WarpContext& warp, uint32_t lane, uint64_t format, uint64_t arguments, ToHostAddress to_host);

// Up to its zero byte.
std::string read_text(WarpContext& warp, uint32_t lane, uint64_t address, ToHostAddress to_host);

// f(lane) for the active lanes as the schedule has them, until a fault.
template <class F> inline void for_each_in_schedule_order(WarpContext& warp, F f) {
  uint8_t order[kWarpSize];
  uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  for (uint32_t k = 0; k < n && warp.fault == KernelFault::None; k++) f(order[k]);
}

}  // namespace vgpu
