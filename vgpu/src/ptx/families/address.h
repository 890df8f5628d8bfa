// Addresses and memory orders of statements.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

constexpr std::string_view kAccessSpaceQualifiers = "global|const|shared|shared::cta|local|param|param::entry|param::func";

// Returns the state space of a statement's qualifiers; Generic also for global and const.
AccessSpace access_space_of(const Statement& s);

// Returns the memory order of a statement's qualifiers, as bits of MemoryOrder.
uint8_t memory_order_of(const Statement& s);

// Sets a (the base register), e (its width in bytes; 0: no base register) and imm.  May change the space: parameters that a body
// declares are in the scratch space, and a variable's name determines the space of a generic address.
void decode_address(Decoder& d, const Statement& s, const Operand& o, AccessSpace& space, Instruction& i);

}  // namespace vgpu
