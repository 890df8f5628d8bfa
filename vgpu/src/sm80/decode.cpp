// Decodes an encoding: finds its row in the table of instructions (table.h), extracts its operands, and checks all other bits.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "decoded.h"

namespace vgpu::sm80 {
namespace {

// The kind and the bits of one of the operands a, b and c in a form (bits 9 to 11 of an encoding).
struct Slot {
  SourceKind kind;
  uint32_t at, width;           // of a register's number
  uint32_t negate, absolute;    // bits
  uint32_t part;                // first of the two bits that select a half or a byte
};

constexpr uint32_t kUniformBit = 91;  // may be set if an operand is a uniform register

// operand.slot: 'a', 'b', 'c', or 'w' for the operand in bits 32 to 63 of every form.  In forms 2, 3 and 7, 'c' has these
// bits and 'b' those of 'c'.
Slot slot_of(const Operand& operand, uint32_t form, Layout layout) {
  const bool uniform = layout == Layout::Uniform, half = operand.suffix == Suffix::Half;
  const SourceKind register_kind = uniform ? SourceKind::UniformRegister : SourceKind::Register;
  const uint32_t width = uniform ? 6 : 8;
  if (operand.slot == 'a') return {register_kind, 24, width, 72, 73, 74};
  const bool third_is_wide = form == 2 || form == 3 || form == 7;
  if (operand.slot != 'w' && (operand.slot == 'c') != third_is_wide)
    return {register_kind, 64, width, half ? 84u : 75u, half ? 83u : 74u, 81};
  SourceKind kind = register_kind;
  if (form == 2 || form == 4) kind = SourceKind::Immediate;
  if (form == 3 || form == 5) kind = SourceKind::Constant;
  if (form == 6 || form == 7) kind = SourceKind::UniformRegister;
  return {kind, 32, kind == SourceKind::UniformRegister ? 6 : width, 63, 62, 60};
}

// Extracts an operand, and adds its bits to `accounted`.
Source read_source(const Operand& operand, const Decoded& d, Encoding& accounted) {
  const Slot slot = slot_of(operand, d.bits(9, 3), d.row->layout);
  Source source;
  source.kind = slot.kind;
  if (slot.kind == SourceKind::Immediate) {
    accounted.set(32, 32);
    source.number = d.bits(32, 32);
    return source;
  }
  if (slot.kind == SourceKind::Constant) {
    accounted.set(38, 21);
    source.bank = d.bits(54, 5), source.offset = static_cast<int32_t>(d.bits(38, 16));
  } else {
    accounted.set(slot.at, slot.width);
    source.number = d.bits(slot.at, slot.width);
    if (slot.kind == SourceKind::UniformRegister && d.row->layout == Layout::Alu) accounted.set(kUniformBit, 1);
  }
  const Suffix suffix = operand.suffix;
  if (suffix != Suffix::None && suffix != Suffix::Part) accounted.set(slot.negate, 1), source.negated = d.bit(slot.negate);
  if (suffix == Suffix::Real || suffix == Suffix::Half) accounted.set(slot.absolute, 1), source.absolute = d.bit(slot.absolute);
  if (suffix == Suffix::Half || suffix == Suffix::Part)
    accounted.set(slot.part, 2), source.part = static_cast<uint8_t>(d.bits(slot.part, 2));
  return source;
}

[[noreturn]] void refuse(const Decoded& d, const std::string& why) {
  char position[32];
  std::snprintf(position, sizeof position, "offset 0x%x: ", d.offset);
  throw Unsupported(position + why + " (" + to_hex(d.encoding) + ")");
}

// Rejects bits that the row does not allow; "!" is the name of such a value of a modifier.
void check_fixed(const Decoded& d) {
  for (const Row::Fixed& entry : d.row->fixed)
    if (d.encoding.bits(entry.field.at, entry.field.width) != entry.value)
      refuse(d, d.row->mnemonic + " with an unknown value at bit " + std::to_string(entry.field.at));
  for (const Modifier& entry : d.row->modifiers)
    if (entry.name(d.encoding) == "!")
      refuse(d, d.row->mnemonic + " with an unknown modifier at bit " + std::to_string(entry.fields[0].at));
}

}  // namespace

std::string to_hex(const Encoding& encoding) {
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(encoding.high),
                static_cast<unsigned long long>(encoding.low));
  return text;
}

std::string_view Decoded::modifier(uint32_t first_bit) const {
  for (const Modifier& candidate : row->modifiers)
    if (!candidate.fields.empty() && candidate.fields[0].at == first_bit) return candidate.name(encoding);
  return {};
}

bool Decoded::has(std::string_view modifier) const {
  return std::any_of(row->modifiers.begin(), row->modifiers.end(),
                     [&](const Modifier& candidate) { return candidate.name(encoding) == modifier; });
}

Decoded decode(Encoding encoding, uint32_t offset) {
  Decoded result;
  result.encoding = encoding, result.offset = offset;
  result.row = find_row(result.bits(0, 12));
  if (!result.row) refuse(result, "an unknown instruction");
  Encoding accounted = result.row->known;
  for (const Operand& operand : result.row->operands) {
    if (operand.kind == OperandKind::Target)
      result.target =
          (result.has("ABS") ? 0 : int64_t(offset) + kEncodingBytes) + encoding.signed_bits(operand.at, operand.width) * 4;
    if (operand.kind != OperandKind::Slot) continue;
    Source& source = operand.slot == 'a' ? result.a : operand.slot == 'c' ? result.c : result.b;
    source = read_source(operand, result, accounted);
  }
  const Encoding unknown = {encoding.low & ~accounted.low, encoding.high & ~accounted.high};
  if (unknown.low || unknown.high) refuse(result, result.row->mnemonic + " with unknown bits " + to_hex(unknown));
  check_fixed(result);
  return result;
}

}  // namespace vgpu::sm80
