// Where an instruction's operand lies, lane by lane, and whether it may be touched.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Instruction;
struct Lanes;

// What an instruction's address counts in.  Param: the function's parameters; Scratch: arguments and results of its calls.
enum class Where : uint8_t { Generic, Shared, Local, Param, Scratch };

// Host addresses of the active lanes for an access of `bytes` at imm, or at the register a of e bytes (0: none) and imm
// behind; false, with the fault set, where one may not be touched.
bool addresses(Lanes& w, const Instruction& i, Where where, uint32_t bytes, uint8_t* at[kLanes], bool writes = false);

// May the lane touch this generic address: the device's, in the block's shared memory or in the lane's own?
bool reachable(Lanes& w, uint32_t lane, uint64_t address, uint32_t bytes, bool writes = false);

}  // namespace vgpu
