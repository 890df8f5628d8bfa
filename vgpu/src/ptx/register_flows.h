// The flow of values through the instructions of a PTX statement (core/register_flow.h).
#pragma once
#include <vector>

#include "core/instruction_set.h"
#include "ptx/families/families.h"

namespace vgpu {

// Sets the flows of the instructions that a family has decoded a statement to; flows: of these instructions, of which those that
// are not Other are set already.  reads, writes: all registers that the statement names, except its guard.
void set_flows(const Statement& s, DecodeFunction family, const Instruction* instructions, RegisterFlow* flows, size_t count,
               const std::vector<uint32_t>& reads, const std::vector<uint32_t>& writes);

}  // namespace vgpu
