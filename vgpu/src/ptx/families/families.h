// The instruction families.  Each decodes the statements of some ops, and implements their instructions.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

// Returns whether the family supports the statement, which it has emitted then.
using DecodeFunction = bool (*)(Decoder&, const Statement&, Instruction&);

bool decode_integer(Decoder&, const Statement&, Instruction&);
bool decode_matrix(Decoder&, const Statement&, Instruction&);
bool decode_wmma(Decoder&, const Statement&, Instruction&);
bool decode_bits(Decoder&, const Statement&, Instruction&);
bool decode_carry(Decoder&, const Statement&, Instruction&);
bool decode_float(Decoder&, const Statement&, Instruction&);
bool decode_half(Decoder&, const Statement&, Instruction&);
bool decode_compare(Decoder&, const Statement&, Instruction&);
bool decode_convert(Decoder&, const Statement&, Instruction&);
bool decode_narrow(Decoder&, const Statement&, Instruction&);  // cvt to formats that only matrix instructions use
bool decode_move(Decoder&, const Statement&, Instruction&);
bool decode_variable_address(Decoder&, const Operand&, Instruction&, bool as_generic);  // emits the address of a variable
bool decode_memory(Decoder&, const Statement&, Instruction&);
bool decode_asynchronous_copy(Decoder&, const Statement&, Instruction&);
bool decode_atomic(Decoder&, const Statement&, Instruction&);
bool decode_call(Decoder&, const Statement&, Instruction&);
bool decode_control(Decoder&, const Statement&, Instruction&);
bool decode_video(Decoder&, const Statement&, Instruction&);
bool decode_stack(Decoder&, const Statement&, Instruction&);
bool decode_texture(Decoder&, const Statement&, Instruction&);
bool decode_surface(Decoder&, const Statement&, Instruction&);
bool decode_warp(Decoder&, const Statement&, Instruction&);

}  // namespace vgpu
