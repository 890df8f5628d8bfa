// Parses the text of a row of instructions.def (table.h describes the syntax).
#pragma once
#include "table.h"

namespace vgpu::sm80 {

struct RowText {
  uint32_t opcode;
  Layout layout;
  const char *forms, *mnemonic, *modifiers, *operands, *fixed;
  Select select;
};

Row parse_row(const RowText& text);  // throws std::logic_error for a syntax error

}  // namespace vgpu::sm80
