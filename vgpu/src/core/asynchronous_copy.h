// Asynchronous copies from global to shared memory (cp.async, LDGSTS), which are executed immediately: that is permitted.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Instruction;
struct WarpContext;

// Copies `bytes` for each active lane: the first source_bytes[lane] from a global address, then zeros.  Notifies the observer of
// the accesses.  Sets a fault if a source may not be read; addresses are multiples of `bytes`.
void copy_asynchronously(WarpContext& warp, const Instruction& i, uint32_t bytes, const uint64_t source[kWarpSize],
                         const uint32_t source_bytes[kWarpSize], uint8_t* const destinations[kWarpSize]);

}  // namespace vgpu
