// Declares the functions that the rows of instructions.def name last (table.h says what the other columns are).  Each sets the
// core's instruction `i` from the decoded one; returns false if it is not supported.
#pragma once
#include "sm80/function_decoder.h"

namespace vgpu::sm80 {

#define INSTRUCTION(opcode, layout, forms, mnemonic, modifiers, operands, fixed, select) \
  bool select(FunctionDecoder& d, const Decoded& c, Instruction& i);
#include "sm80/instructions.def"
#undef INSTRUCTION

}  // namespace vgpu::sm80
