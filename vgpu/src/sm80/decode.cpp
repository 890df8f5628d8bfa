// Finds an encoding's row, and takes its modifiers and operands apart.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "decoded.h"

namespace vgpu::sm80 {
namespace {

// Where one of the operands a, b and c lies in a form, and as what.
struct Slot {
  SourceKind kind;
  uint32_t at, width;           // of a register's number
  uint32_t negate, absolute, part;  // bits
};

constexpr uint32_t kUniformBit = 91;

Slot slot_of(const Operand& operand, uint32_t form, Layout layout) {
  const bool uniform = layout == Layout::Uniform, half = operand.suffix == Suffix::Half;
  const SourceKind plain = uniform ? SourceKind::UniformRegister : SourceKind::Register;
  const uint32_t width = uniform ? 6 : 8;
  if (operand.slot == 'a') return {plain, 24, width, 72, 73, 74};
  const bool third_is_wide = form == 2 || form == 3 || form == 7;
  if (operand.slot != 'w' && (operand.slot == 'c') != third_is_wide)
    return {plain, 64, width, half ? 84u : 75u, half ? 83u : 74u, 81};
  SourceKind held = plain;
  if (form == 2 || form == 4) held = SourceKind::Immediate;
  if (form == 3 || form == 5) held = SourceKind::Constant;
  if (form == 6 || form == 7) held = SourceKind::UniformRegister;
  return {held, 32, held == SourceKind::UniformRegister ? 6 : width, 63, 62, 60};
}

// `known`: the bits that have a meaning, to which the operand's are added.
Source read_source(const Operand& operand, const Decoded& d, Encoding& known) {
  const Slot slot = slot_of(operand, d.bits(9, 3), d.row->layout);
  Source made;
  made.kind = slot.kind;
  if (slot.kind == SourceKind::Immediate) {
    known.set(32, 32);
    made.number = d.bits(32, 32);
    return made;
  }
  if (slot.kind == SourceKind::Constant) {
    known.set(38, 21);
    made.bank = d.bits(54, 5), made.offset = static_cast<int32_t>(d.bits(38, 16));
  } else {
    known.set(slot.at, slot.width);
    made.number = d.bits(slot.at, slot.width);
    if (slot.kind == SourceKind::UniformRegister && d.row->layout == Layout::Alu) known.set(kUniformBit, 1);
  }
  const Suffix suffix = operand.suffix;
  if (suffix != Suffix::None && suffix != Suffix::Part) known.set(slot.negate, 1), made.negated = d.bit(slot.negate);
  if (suffix == Suffix::Real || suffix == Suffix::Half) known.set(slot.absolute, 1), made.absolute = d.bit(slot.absolute);
  if (suffix == Suffix::Half || suffix == Suffix::Part)
    known.set(slot.part, 2), made.part = static_cast<uint8_t>(d.bits(slot.part, 2));
  return made;
}

[[noreturn]] void refuse(const Decoded& d, const std::string& why) {
  char at[32];
  std::snprintf(at, sizeof at, "offset 0x%x: ", d.offset);
  throw Unsupported(at + why + " (" + to_hex(d.encoding) + ")");
}

void check_fixed(const Decoded& d) {
  for (const Row::Fixed& one : d.row->fixed)
    if (d.encoding.bits(one.field.at, one.field.width) != one.value)
      refuse(d, d.row->mnemonic + " with an unknown value at bit " + std::to_string(one.field.at));
  for (const Modifier& one : d.row->modifiers)
    if (one.name(d.encoding) == "!")
      refuse(d, d.row->mnemonic + " with an unknown modifier at bit " + std::to_string(one.fields[0].at));
}

}  // namespace

std::string to_hex(const Encoding& encoding) {
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(encoding.high),
                static_cast<unsigned long long>(encoding.low));
  return text;
}

std::string_view Decoded::modifier(uint32_t first_bit) const {
  for (const Modifier& one : row->modifiers)
    if (!one.fields.empty() && one.fields[0].at == first_bit) return one.name(encoding);
  return {};
}

bool Decoded::has(std::string_view modifier) const {
  return std::any_of(row->modifiers.begin(), row->modifiers.end(),
                     [&](const Modifier& one) { return one.name(encoding) == modifier; });
}

Decoded decode(Encoding encoding, uint32_t offset) {
  Decoded made;
  made.encoding = encoding, made.offset = offset;
  made.row = find_row(made.bits(0, 12));
  if (!made.row) refuse(made, "an unknown instruction");
  Encoding known = made.row->known;
  for (const Operand& one : made.row->operands) {
    if (one.kind == OperandKind::Target)
      made.target = int64_t(offset) + kEncodingBytes + encoding.signed_bits(one.at, one.width) * 4;
    if (one.kind != OperandKind::Slot) continue;
    Source& source = one.slot == 'a' ? made.a : one.slot == 'c' ? made.c : made.b;
    source = read_source(one, made, known);
  }
  const Encoding unknown = {encoding.low & ~known.low, encoding.high & ~known.high};
  if (unknown.low || unknown.high) refuse(made, made.row->mnemonic + " with unknown bits " + to_hex(unknown));
  check_fixed(made);
  return made;
}

}  // namespace vgpu::sm80
