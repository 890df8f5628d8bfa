// The rows of instructions.def, parsed once, and found by opcode.
#include "table.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "families/select.h"
#include "row_parser.h"

namespace vgpu::sm80 {

uint32_t Modifier::value(const Encoding& e) const {
  uint32_t all = 0, shift = 0;
  for (const Field& one : fields) all |= static_cast<uint32_t>(e.bits(one.at, one.width)) << shift, shift += one.width;
  return all;
}

bool Operand::is_present(const Encoding& e) const {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& one) { return e.bit(one.bit) == one.set; });
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define INSTRUCTION(opcode, layout, forms, mnemonic, modifiers, operands, fixed, select) \
  parse_row({opcode, Layout::layout, forms, mnemonic, modifiers, operands, fixed, select}),
#include "instructions.def"
#undef INSTRUCTION
  };
  return all;
}

const Row* find_row(uint32_t opcode12) {
  static const std::array<const Row*, 4096> index = [] {
    std::array<const Row*, 4096> made{};
    for (const Row& row : rows()) {
      if (row.layout == Layout::Plain) {
        made[row.opcode] = &row;
        continue;
      }
      for (char form : row.forms) made[row.opcode | static_cast<uint32_t>(form - '0') << 9] = &row;
    }
    return made;
  }();
  return index[opcode12 & 0xfff];
}

}  // namespace vgpu::sm80
