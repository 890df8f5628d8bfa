// printf() of kernels, whose format and arguments lie in device memory.
#pragma once
#include <cstdint>
#include <string>

#include "lanes.h"
#include "schedule.h"
#include "warp_context.h"

namespace vgpu {

// Converts a lane's generic address to a host address; an instruction set may encode addresses of a lane's memory in its own way.
using ToHostAddress = uint64_t (*)(const WarpContext& warp, uint32_t lane, uint64_t address);

// Prints to standard output, and returns the number of fields.  An address that may not be read is a fault of the launch.
int32_t print_formatted(WarpContext& warp, uint32_t lane, uint64_t format, uint64_t arguments, ToHostAddress to_host);

// Reads a string up to its zero byte.
std::string read_text(WarpContext& warp, uint32_t lane, uint64_t address, ToHostAddress to_host);

// Calls f(lane) for the active lanes in the schedule's order, until a fault.
template <class F> inline void for_each_in_schedule_order(WarpContext& warp, F f) {
  uint8_t order[kWarpSize];
  uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  for (uint32_t k = 0; k < n && warp.fault == KernelFault::None; k++) f(order[k]);
}

}  // namespace vgpu
