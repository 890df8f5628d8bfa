// The registers of a matrix's fragment, which an instruction reads and writes as consecutive ones.
#pragma once
#include "families.h"

namespace vgpu {

// Copies a vector's registers into consecutive scratch registers and returns the first one.
uint32_t gather_fragment(Decoder& d, const Statement& s, const Operand& o, std::string_view type, size_t count, Instruction i);
// Copies consecutive registers, from the first one on, into a vector's.
void scatter_fragment(Decoder& d, const Operand& o, std::string_view type, uint32_t first, Instruction i);

}  // namespace vgpu
