// One launch of a kernel, from its first block to its last.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "instruction_set.h"

namespace vgpu {

struct Launch {
  Functions* functions;  // of the kernel's module
  const Program* program;
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared = 0;       // bytes
  std::vector<uint8_t> parameters;   // as the kernel's declaration lays them out
  uint64_t most_instructions = 0;    // of all lanes together; 0: no limit
  uint64_t number = 0;               // since the schedule was set
  Observer* observer = nullptr;
  Heap* heap = nullptr;              // from which the kernel may take memory
  const TextureObjects* textures = nullptr;
  uint64_t grid_workspace = 0;       // of a cooperative launch: where its blocks meet (cooperative groups' grid.sync())

  uint32_t threads() const { return block[0] * block[1] * block[2]; }  // of a block
};

struct Outcome {
  Fault fault = Fault::None;
  std::string message;        // empty where all went well
  uint64_t instructions = 0;  // of all lanes together
  uint64_t atomics = 0;
  uint64_t blocks = 0;
  uint64_t choices = 0;  // of the schedule
};

Outcome run(const Launch& launch, Schedule& schedule, const Memory& memory);

}  // namespace vgpu
