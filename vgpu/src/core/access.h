// Resolves and checks the addresses that the lanes of a warp access.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Instruction;
struct WarpContext;

// The state space of an address.  Param: the function's parameters; Scratch: arguments and results of the calls it makes.
enum class AccessSpace : uint8_t { Generic, Shared, Local, Param, Scratch };

// Computes each active lane's host address of an access of `bytes`: the value of register i.a, which is i.e bytes wide (0: no
// register), plus i.imm.  Returns false, and sets the fault, if an access is not permitted.
bool resolve_addresses(WarpContext& warp, const Instruction& i, AccessSpace space, uint32_t bytes,
                       uint8_t* addresses[kWarpSize], bool writes = false);

// The same for addresses, or offsets in a space, that the caller has computed for each lane.
bool check_addresses(WarpContext& warp, const uint64_t* address, uint32_t bytes, uint8_t* addresses[kWarpSize],
                     bool writes = false);
// The same for addresses in two halves of 32 bits, the lower ones of all lanes before the upper ones, to which an offset is added.
bool check_addresses(WarpContext& warp, const uint32_t* halves, uint64_t offset, uint32_t bytes, uint8_t* addresses[kWarpSize],
                     bool writes);
bool check_offsets(WarpContext& warp, AccessSpace space, const uint32_t* offset, uint32_t bytes, uint8_t* addresses[kWarpSize]);

// Returns whether the lane may access this generic address: global memory, its block's shared memory, or its own memory.
bool is_accessible(WarpContext& warp, uint32_t lane, uint64_t address, uint32_t bytes, bool writes = false);

// Returns whether all 32 lanes are active and access consecutive elements, as in most kernels.
inline bool is_contiguous(uint32_t mask, uint8_t* const addresses[kWarpSize], uint64_t bytes) {
  if (mask != kFullMask || addresses[kWarpSize - 1] != addresses[0] + (kWarpSize - 1) * bytes) return false;
  uint64_t off = 0;
  for (uint32_t l = 0; l < kWarpSize; l++) off |= static_cast<uint64_t>(addresses[l] - addresses[0]) ^ (l * bytes);
  return off == 0;
}

}  // namespace vgpu
