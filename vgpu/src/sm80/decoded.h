// Decoded instructions: an encoding, its row of the table of instructions (table.h), and its operands.
#pragma once
#include <string>
#include <string_view>

#include "table.h"

namespace vgpu::sm80 {

enum class SourceKind : uint8_t { None, Register, UniformRegister, Immediate, Constant };

// The part of a register that an operand uses: both halves, one half for both, or the whole register as a float.
enum HalfPart : uint8_t { kBothHalves, kAsFloat, kLowHalf, kHighHalf };

// One of the operands a, b and c, whose kinds the encoding's form gives (bits 9 to 11).
struct Source {
  SourceKind kind = SourceKind::None;
  bool negated = false, absolute = false;
  uint8_t part = 0;       // selects a half (HalfPart) or a byte of the register
  uint32_t number = kRZ;  // of the register, or bits of the immediate
  uint32_t bank = 0;
  int32_t offset = 0;     // in the bank
};

struct Decoded {
  Encoding encoding;
  const Row* row = nullptr;
  uint32_t offset = 0;  // of the instruction in its function
  Source a, b, c;
  int64_t target = 0;   // of a branch

  uint32_t bits(uint32_t at, uint32_t width) const { return static_cast<uint32_t>(encoding.bits(at, width)); }
  bool bit(uint32_t at) const { return encoding.bit(at); }
  uint32_t guard() const { return bits(12, 3); }
  bool is_guard_negated() const { return bit(15); }
  // Returns the name of the modifier with this first bit; empty: it is not spelled.
  std::string_view modifier(uint32_t first_bit) const;
  bool has(std::string_view modifier) const;
};

// Throws Unsupported, with the offset and the bits, for an unknown encoding.
Decoded decode(Encoding encoding, uint32_t offset);

std::string to_hex(const Encoding& encoding);

// Returns the instruction in the syntax of NVIDIA's disassembler.
std::string to_text(const Decoded& decoded);

}  // namespace vgpu::sm80
