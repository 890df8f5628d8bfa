// From a row's text (table.h says how it is written) to its fields.
#pragma once
#include "table.h"

namespace vgpu::sm80 {

struct RowText {
  uint32_t opcode;
  Layout layout;
  const char *forms, *mnemonic, *modifiers, *operands, *fixed;
  Select select;
};

Row parse_row(const RowText& text);  // std::logic_error: it is not written as it must be

}  // namespace vgpu::sm80
