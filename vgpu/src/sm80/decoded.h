// An encoding and what its row says of it.
#pragma once
#include <string>
#include <string_view>

#include "table.h"

namespace vgpu::sm80 {

enum class SourceKind : uint8_t { None, Register, UniformRegister, Immediate, Constant };

// Which part of a register an operand means: of halves both, or one of them twice, or all of it as a float.
enum HalfPart : uint8_t { kBothHalves, kAsFloat, kLowHalf, kHighHalf };

// One of the operands a, b and c, where it lies in this form.
struct Source {
  SourceKind kind = SourceKind::None;
  bool negated = false, absolute = false;
  uint8_t part = 0;
  uint32_t number = kRZ;  // of a register, or an immediate's bits
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
  // The name that the modifier with this first bit has here; empty: it spells nothing.
  std::string_view modifier(uint32_t first_bit) const;
  bool has(std::string_view modifier) const;
};

// Unsupported, with the offset and the bits: no row says what it means.
Decoded decode(Encoding encoding, uint32_t offset);

std::string to_hex(const Encoding& encoding);

// The instruction and its operands as NVIDIA's disassembler prints them.
std::string to_text(const Decoded& decoded);

}  // namespace vgpu::sm80
