// One launch of a kernel, and its result.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "instruction_set.h"

namespace vgpu {

struct Launch {
  Functions* functions;  // of the kernel's module
  const DecodedFunction* program;
  const char* code = "ptx";  // the instruction set, the name in reports
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared = 0;       // bytes
  std::vector<uint8_t> parameters;   // in the layout of the kernel's declaration
  uint32_t multiprocessors = 1;
  int compute_capability = 80;     // 80 for 8.0
  uint32_t max_call_depth = 1024;  // nested calls; memory may run out before (memory_reservation.h)
  uint64_t max_instructions = 0;    // of all lanes together; 0: no limit
  uint64_t index = 0;               // number of the launch since the schedule was set
  Observer* observer = nullptr;
  uint32_t operation = 0;            // its number in the order of streams (StreamOrder), for observers
  DeviceHeap* heap = nullptr;              // for malloc() of kernels
  const TextureObjects* textures = nullptr;
  uint64_t grid_workspace = 0;       // of a cooperative launch: address of the state of grid.sync()

  uint32_t threads_per_block() const { return block[0] * block[1] * block[2]; }
  uint32_t warps_per_block() const { return (threads_per_block() + kWarpSize - 1) / kWarpSize; }
};

struct LaunchResult {
  KernelFault fault = KernelFault::None;
  std::string message;        // empty without a fault
  uint64_t instructions = 0;  // of all lanes together
  uint64_t atomics = 0;
  uint64_t blocks = 0;
  uint64_t schedule_choices = 0;  // scheduling decisions
};

LaunchResult run_launch(const Launch& launch, Schedule& schedule, const DeviceMemory& memory);

}  // namespace vgpu
