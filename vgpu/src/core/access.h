// Where an instruction's operand lies, lane by lane, and whether it may be touched.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Instruction;
struct WarpContext;

// What an instruction's address counts in.  Param: the function's parameters; Scratch: arguments and results of its calls.
enum class AccessSpace : uint8_t { Generic, Shared, Local, Param, Scratch };

// Host addresses of the active lanes for an access of `bytes` at imm, or at the register a of e bytes (0: none) and imm
// behind; false, with the fault set, where one may not be touched.
bool resolve_addresses(WarpContext& warp, const Instruction& i, AccessSpace where, uint32_t bytes, uint8_t* at[kWarpSize],
                       bool writes = false);

// The same for addresses, or for offsets of a space, that the caller has computed for each lane.
bool check_addresses(WarpContext& warp, const uint64_t* address, uint32_t bytes, uint8_t* at[kWarpSize], bool writes = false);
bool check_offsets(WarpContext& warp, AccessSpace where, const uint32_t* offset, uint32_t bytes, uint8_t* at[kWarpSize]);

// May the lane touch this generic address: the device's, in the block's shared memory or in the lane's own?
bool is_accessible(WarpContext& warp, uint32_t lane, uint64_t address, uint32_t bytes, bool writes = false);

// All lanes, one behind the other: what most kernels do.
inline bool is_contiguous(uint32_t mask, uint8_t* const at[kWarpSize], uint64_t bytes) {
  if (mask != kFullMask || at[kWarpSize - 1] != at[0] + (kWarpSize - 1) * bytes) return false;
  uint64_t off = 0;
  for (uint32_t l = 0; l < kWarpSize; l++) off |= static_cast<uint64_t>(at[l] - at[0]) ^ (l * bytes);
  return off == 0;
}

}  // namespace vgpu
