// Where an instruction is: its function, its line or offset there, and its source lines if the code has them.
#pragma once
#include <string>
#include <vector>

#include "instruction_set.h"

namespace vgpu {

struct CodePosition {
  std::string function;  // empty: unknown
  const char* unit = "line";  // DecodedFunction::position_unit
  uint32_t line = 0;
  std::vector<SourceLine> source;
};

CodePosition find_position(uint32_t position);  // position: Instruction::position

}  // namespace vgpu
