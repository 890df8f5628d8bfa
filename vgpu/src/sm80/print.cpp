// Prints instructions in the syntax of NVIDIA's disassembler, with whose output tests compare the decoder.
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "arithmetic/bits.h"
#include "arithmetic/half.h"
#include "decoded.h"

namespace vgpu::sm80 {
namespace {

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* pattern, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string print_number(int64_t value) {
  if (value < 0) return format("-0x%llx", static_cast<unsigned long long>(-static_cast<uint64_t>(value)));
  return format("0x%llx", static_cast<unsigned long long>(value));
}
std::string print_register(uint32_t number) { return number == kRZ ? "RZ" : format("R%u", number); }
std::string print_uniform(uint32_t number) { return number == kURZ ? "URZ" : format("UR%u", number); }
std::string print_predicate(uint32_t number, bool uniform) {
  return std::string(uniform ? "U" : "") + (number == kPT ? "PT" : format("P%u", number));
}

std::string print_real(double value) {
  if (value != value) return std::signbit(value) ? "-QNAN " : "+QNAN ";
  if (std::isinf(value)) return value < 0 ? "-INF " : "+INF ";
  if (value == 0) return std::signbit(value) ? "-RZ" : "0";
  return format(std::fabs(value) >= 0x1p31 ? "%.20e" : "%.20g", value);
}

std::string print_halves(const Decoded& d, uint32_t bits) {
  const auto print_half = [&](uint16_t half) -> std::string {
    if (half == 0x8000) return "-0.0 ";
    return print_real(d.has("BF16_V2") ? bfloat16_to_float(half) : half_to_float(half));
  };
  return print_half(static_cast<uint16_t>(bits >> 16)) + ", " + print_half(static_cast<uint16_t>(bits));
}

bool has_signed_immediates(const std::string& mnemonic) {
  for (const char* name :
       {"IADD3", "IMNMX", "IMAD", "IMAD.WIDE", "IMAD.HI", "ISETP", "UIADD3", "UISETP", "UIMAD", "UIMAD.WIDE"})
    if (mnemonic == name) return true;
  return false;
}

std::string print_immediate(const Decoded& d, const Operand& operand, uint32_t bits) {
  const std::string& mnemonic = d.row->mnemonic;
  if (operand.suffix == Suffix::Half) return print_halves(d, bits);
  if (operand.suffix != Suffix::Real)
    return print_number(has_signed_immediates(mnemonic) ? int64_t(static_cast<int32_t>(bits)) : int64_t(bits));
  if (mnemonic[0] == 'D' || d.has("RCP64H") || d.has("RSQ64H")) return print_real(bit_cast<double>(uint64_t(bits) << 32));
  const float value = bit_cast<float>(bits);
  if (value != value && !(bits & 0x400000)) return bits >> 31 ? "-SNAN " : "+SNAN ";
  return print_real(value);
}

std::string print_part(const Decoded& d, const Operand& operand, uint8_t part) {
  static const char* const halves[] = {"", ".F32", ".H0_H0", ".H1_H1"};
  if (operand.suffix == Suffix::Half) return halves[part];
  if (operand.suffix != Suffix::Part || !part) return "";
  return format(d.bits(84, 2) == 0 ? ".B%u" : ".H%u", part);
}

std::string print_source(const Decoded& d, const Operand& operand) {
  const Source& source = operand.slot == 'a' ? d.a : operand.slot == 'c' ? d.c : d.b;
  std::string text;
  switch (source.kind) {
    case SourceKind::Immediate: return print_immediate(d, operand, source.number);
    case SourceKind::Register: text = print_register(source.number); break;
    case SourceKind::UniformRegister: text = print_uniform(source.number); break;
    default:
      text = format(operand.suffix == Suffix::Half ? "c[0x%x] [%s]" : "c[0x%x][%s]", source.bank,
                    print_number(static_cast<int16_t>(source.offset)).c_str());
  }
  if (source.absolute) text = "|" + text + "|";
  text += print_part(d, operand, source.part);
  // Bit 74: an addition with a carry in (.X).
  const bool inverts = operand.suffix == Suffix::Invert || (operand.suffix == Suffix::Carry && d.bit(74));
  return (source.negated ? inverts ? "~" : "-" : "") + text;
}

std::string join_terms(const std::string& base, const std::string& added) {
  return base.empty() || added.empty() ? base + added : base + "+" + added;
}

std::string print_constant(const Decoded& d, const Operand& operand) {
  std::string base;
  if (operand.address == AddressKind::Constant && d.bits(24, 8) != kRZ) base = print_register(d.bits(24, 8));
  if (operand.address == AddressKind::IndexedUniformConstant) base = print_uniform(d.bits(24, 6));
  const int16_t offset = static_cast<int16_t>(d.bits(38, 16));
  return format("c[0x%x][%s]", d.bits(54, 5), join_terms(base, base.empty() || offset ? print_number(offset) : "").c_str());
}

std::string print_base(const Decoded& d, const Operand& operand, uint32_t base) {
  static const char* const scales[] = {"", ".X4", ".X8", ".X16"};
  switch (operand.address) {
    case AddressKind::Shared: return print_register(base) + scales[d.bits(78, 2)];
    case AddressKind::Global:
    case AddressKind::Reduction: return print_register(base) + (d.bit(90) ? ".64" : "");
    case AddressKind::Atomic: return print_register(base) + (d.bit(70) ? ".64" : "");
    case AddressKind::AsyncFrom: return print_register(base) + ".64";
    default: return print_register(base);
  }
}

bool has_descriptor(AddressKind kind) {
  return kind == AddressKind::Global || kind == AddressKind::Reduction || kind == AddressKind::Atomic;
}

std::string print_address(const Decoded& d, const Operand& operand) {
  if (operand.address >= AddressKind::Constant) return print_constant(d, operand);
  const bool is_destination = operand.address == AddressKind::AsyncTo;
  const uint32_t base = d.bits(is_destination ? 16 : 24, 8);
  int64_t offset = d.encoding.signed_bits(40, 24);
  if (is_destination) offset = d.encoding.signed_bits(44, 20);
  if (operand.address == AddressKind::AsyncFrom) offset = d.bits(32, 12);
  const bool adds_uniform =
      operand.at && d.bit(91) && (operand.address == AddressKind::Shared || operand.address == AddressKind::Local);
  std::string text;
  if (base != kRZ || (!adds_uniform && !offset)) text = print_base(d, operand, base);
  if (adds_uniform) text = join_terms(text, print_uniform(d.bits(operand.at, 6)));
  const bool shows_descriptor = has_descriptor(operand.address) && d.bit(kDescribedBit);
  return (shows_descriptor ? "desc[" + print_uniform(d.bits(operand.at, 6)) + "]" : "") + "[" +
         join_terms(text, offset ? print_number(offset) : "") + "]";
}

std::string print_special(uint32_t number) {
  switch (number) {
    case 0x00: return "SR_LANEID";
    case 0x02: return "SR_VIRTCFG";
    case 0x03: return "SR_VIRTID";
    case 0x21: return "SR_TID.X";
    case 0x22: return "SR_TID.Y";
    case 0x23: return "SR_TID.Z";
    case 0x25: return "SR_CTAID.X";
    case 0x26: return "SR_CTAID.Y";
    case 0x27: return "SR_CTAID.Z";
    case 0x32: return "SR_SMEMSZ";
    case 0x38: return "SR_EQMASK";
    case 0x39: return "SR_LTMASK";
    case 0x3a: return "SR_LEMASK";
    case 0x3b: return "SR_GTMASK";
    case 0x3c: return "SR_GEMASK";
    case 0x43: return "SR_VIRTUALSMID";
    case 0x50: return "SR_CLOCKLO";
    case 0x51: return "SR_CLOCKHI";
    case 0x52: return "SR_GLOBALTIMERLO";
    case 0x53: return "SR_GLOBALTIMERHI";
    case 0xff: return "SRZ";
    default: return format("SR%u", number);
  }
}

// The operands of DEPBAR: a scoreboard, its maximum count, and the scoreboards that must be empty.
std::string print_scoreboards(const Decoded& d) {
  std::string listed;
  for (int k = 5; k >= 0; k--)
    if (d.bit(32 + static_cast<uint32_t>(k))) listed += (listed.empty() ? "" : ",") + std::to_string(k);
  return format("SB%u, 0x%x", d.bits(44, 3), d.bits(38, 6)) + (listed.empty() ? "" : ", {" + listed + "}");
}

// Pu: a predicate that is uniform if the bit before it is set.
std::string print_read_predicate(const Decoded& d, const Operand& operand) {
  const bool uniform = operand.uniform || (operand.text == "Pu" && d.bit(operand.at - 1));
  return (d.bit(operand.at + 3) ? "!" : "") + print_predicate(d.bits(operand.at, 3), uniform);
}

// Returns whether an optional operand has its default value, which is not printed.
bool is_default(const Decoded& d, const Operand& operand) {
  if (!operand.optional) return false;
  const uint32_t value = d.bits(operand.at, operand.width);
  if (operand.kind == OperandKind::Register) return value == kRZ;
  if (operand.kind == OperandKind::Number) return value == 0;
  return operand.kind == OperandKind::UniformRegister ? value == kURZ : value == kPT;
}

std::string print_operand(const Decoded& d, const Operand& operand) {
  constexpr uint32_t kReturn = 0x950, kCall = 0x344;  // their offsets are from the function's beginning
  const uint32_t value = operand.width && operand.width <= 32 ? d.bits(operand.at, operand.width) : 0;
  switch (operand.kind) {
    case OperandKind::Slot: return print_source(d, operand);
    case OperandKind::Register: return print_register(value) + operand.text;
    case OperandKind::UniformRegister: return print_uniform(value);
    case OperandKind::Written: return print_predicate(value, operand.uniform);
    case OperandKind::Read: return print_read_predicate(d, operand);
    case OperandKind::Number: return print_number(static_cast<int64_t>(d.encoding.bits(operand.at, operand.width)));
    case OperandKind::Table: return print_number(d.bits(64, 3) | d.bits(72, 5) << 3);
    case OperandKind::ConvergenceBarrier: return format("B%u", value);
    case OperandKind::SpecialRegister: return print_special(value);
    case OperandKind::Target:  // T: a branch's target; O: an offset that is added to a register
      if (operand.text == "T" || d.row->opcode == kReturn || d.row->opcode == kCall) return print_number(d.target);
      return print_number(d.target - d.offset - kEncodingBytes);
    case OperandKind::Mask: return (d.bit(30) ? "~" : "") + print_uniform(d.bits(24, 6));
    case OperandKind::Scoreboards: return print_scoreboards(d);
    case OperandKind::Address: return print_address(d, operand);
    case OperandKind::Text: return operand.text;
  }
  return "";
}

// IMAD has other names if it only moves, adds or shifts.
std::string print_mnemonic(const Decoded& d) {
  if (d.row->mnemonic != "IMAD" || d.bit(74)) return d.row->mnemonic;
  const auto is_zero = [](const Source& source) { return source.kind == SourceKind::Register && source.number == kRZ; };
  const bool is_immediate = d.b.kind == SourceKind::Immediate;
  if (is_zero(d.a) && is_zero(d.b) && d.c.kind != SourceKind::UniformRegister) return "IMAD.MOV";
  if (is_immediate && d.b.number == 1 && d.c.kind == SourceKind::Register) return "IMAD.IADD";
  const uint32_t factor = d.b.number;
  const bool is_power_of_two = factor && (factor & (factor - 1)) == 0 && factor != 0x10000 && factor >> 31 == 0;
  return is_immediate && is_zero(d.c) && is_power_of_two ? "IMAD.SHL" : "IMAD";
}

}  // namespace

std::string to_text(const Decoded& d) {
  std::string text;
  if (d.guard() != kPT || d.is_guard_negated())
    text = std::string("@") + (d.is_guard_negated() ? "!" : "") + print_predicate(d.guard(), d.row->uniform_guard) + " ";
  text += print_mnemonic(d);
  for (const Modifier& entry : d.row->modifiers)
    if (!entry.name(d.encoding).empty()) text += "." + entry.name(d.encoding);
  const char* separator = " ";
  for (const Operand& entry : d.row->operands) {
    if (!entry.is_present(d.encoding) || is_default(d, entry)) continue;
    const bool is_offset = entry.kind == OperandKind::Target && entry.text == "O";
    text += (is_offset ? " " : separator) + print_operand(d, entry);
    separator = ", ";
  }
  while (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace vgpu::sm80
