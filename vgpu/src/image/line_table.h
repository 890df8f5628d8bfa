// Line tables of machine code: the section .debug_line in DWARF's format, versions 2 to 4, with NVIDIA's opcode for inlined code.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

// By function: its source lines by the first offset of their code (DecodedFunction::source_lines).
using LineTables = std::map<std::string, std::map<uint32_t, std::vector<SourceLine>>>;

// Reads a section; a damaged one gives no lines.  function_at(position): the function whose address the linker writes at this
// position of the section; empty: none.
LineTables read_line_tables(std::string_view section, const std::function<std::string(uint64_t)>& function_at);

}  // namespace vgpu
