// Which results nobody looks at, and which depend on where a thread runs: what analyses want to know of a function.
#pragma once
#include "core/instruction_set.h"

namespace vgpu {

// Sets result_unused of loads, atomics and sources, and the source of what reads a special register of that kind.  PTX comes
// nearly in single assignment, so it is enough to ask whether any other instruction names the register, in whatever part.
void mark_register_uses(DecodedFunction& function);

}  // namespace vgpu
