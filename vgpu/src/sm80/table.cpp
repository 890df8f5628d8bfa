// The parsed rows of instructions.def, and their index by opcode.
#include "table.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "families/select.h"
#include "row_parser.h"

namespace vgpu::sm80 {

uint32_t Modifier::value(const Encoding& e) const {
  uint32_t value = 0, shift = 0;
  for (const Field& field : fields)
    value |= static_cast<uint32_t>(e.bits(field.at, field.width)) << shift, shift += field.width;
  return value;
}

bool Operand::is_present(const Encoding& e) const {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) { return e.bit(condition.bit) == condition.set; });
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define INSTRUCTION(opcode, layout, forms, mnemonic, modifiers, operands, fixed, select) \
  parse_row({opcode, Layout::layout, forms, mnemonic, modifiers, operands, fixed, select}),
#include "instructions.def"
#undef INSTRUCTION
  };
  return table;
}

const Row* find_row(uint32_t opcode12) {
  static const std::array<const Row*, 4096> index = [] {
    std::array<const Row*, 4096> by_opcode{};
    for (const Row& row : rows()) {
      if (row.layout == Layout::Plain) {
        by_opcode[row.opcode] = &row;
        continue;
      }
      // The form is bits 9 to 11, behind the opcode.
      for (char form : row.forms) by_opcode[row.opcode | static_cast<uint32_t>(form - '0') << 9] = &row;
    }
    return by_opcode;
  }();
  return index[opcode12 & 0xfff];
}

}  // namespace vgpu::sm80
