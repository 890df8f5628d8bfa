// Addresses as statements write them.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

constexpr std::string_view kAccessSpaceQualifiers = "global|const|shared|shared::cta|local|param|param::entry|param::func";

// The space that a statement's words name; Generic for global and const ones, too.
AccessSpace access_space_of(const Statement& s);

// What its words say of its order among other threads' accesses.
uint8_t memory_order_of(const Statement& s);

// Sets a (the base register, or what stands for it), e (its width in bytes, 0: none) and imm.  The space may change: a
// parameter that a body declares lies in the scratch space, and a variable's name says where a generic address points to.
void decode_address(Decoder& d, const Statement& s, const Operand& o, AccessSpace& where, Instruction& i);

}  // namespace vgpu
