// The modifiers, types and number of operands that each PTX instruction permits (PTX ISA, syntax of the instructions).
#pragma once
#include "decoder.h"

namespace vgpu {

// Returns false if the instruction exists but not in this form; true also for unknown instructions, which the families reject.
bool has_form(const Statement& s);

}  // namespace vgpu
