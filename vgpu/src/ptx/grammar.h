// Which modifiers, types and how many operands each instruction may have: PTX ISA, the syntax of each one.
#pragma once
#include "decoder.h"

namespace vgpu {

// False where the op is known and has no such form; what is no instruction at all is the families' to refuse.
bool has_form(const Statement& s);

}  // namespace vgpu
