// Marks unused results, and results that the schedule decides, for analyses.
#pragma once
#include "core/instruction_set.h"

namespace vgpu {

// Sets Instruction::result_unused and old_value of loads, atomics and schedule sources, and the source of instructions that read
// special registers such as %clock.  PTX is almost in single assignment form, so a result is unused if no other instruction names
// the register.
void mark_register_uses(DecodedFunction& function);

}  // namespace vgpu
