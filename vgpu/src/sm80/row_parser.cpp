// Parses the modifiers, operands and fixed bits of a row of instructions.def, and records the bits that they account for.
// table.h describes the syntax.
#include "row_parser.h"

#include <map>
#include <sstream>
#include <stdexcept>

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kGuardBits = 16;       // the opcode and the guard: bits 0 to 15
constexpr Field kScheduling = {105, 23};  // stalls and scoreboards, which are ignored: execution is in order

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

[[noreturn]] void fail(const std::string& text) { throw std::logic_error("instructions.def: " + text); }

uint32_t number(const std::string& text) { return static_cast<uint32_t>(std::stoul(text)); }

// Parses "75:2"; the default width is one bit.
Field parse_field(const std::string& text) {
  const size_t colon = text.find(':');
  return {number(text), colon == std::string::npos ? 1 : number(text.substr(colon + 1))};
}

Modifier parse_modifier(const std::string& text, Encoding& accounted) {
  const size_t open = text.find('{');
  if (open == std::string::npos || text.back() != '}') fail(text);
  Modifier modifier;
  for (const std::string& part : split(text.substr(0, open), '+')) {
    modifier.fields.push_back(parse_field(part));
    accounted.set(modifier.fields.back().at, modifier.fields.back().width);
  }
  for (const std::string& name : split(text.substr(open + 1, text.size() - open - 2), '|'))
    modifier.names.push_back(name == "-" ? "" : name);
  uint32_t width = 0;
  for (const Field& field : modifier.fields) width += field.width;
  if (width == 1 && modifier.names.size() == 1) modifier.names.insert(modifier.names.begin(), "");
  if (modifier.names.size() > size_t(1) << width) fail(text);
  modifier.names.resize(size_t(1) << width, "!");
  return modifier;
}

Suffix suffix_of(const std::string& name) {
  static const std::map<std::string, Suffix> suffixes = {
      {"", Suffix::None},       {"neg", Suffix::Negate}, {"real", Suffix::Real}, {"not", Suffix::Invert},
      {"carry", Suffix::Carry}, {"half", Suffix::Half},  {"part", Suffix::Part}};
  const auto entry = suffixes.find(name);
  if (entry == suffixes.end()) fail(name);
  return entry->second;
}

void parse_address(const std::string& name, Operand& operand, Encoding& accounted) {
  struct Kind {
    AddressKind kind;
    uint32_t uniform_at;  // 0: no uniform register
    std::vector<Field> fields;
  };
  const Field base = {24, 8}, offset = {40, 24}, bank = {38, 21}, described = {kDescribedBit, 1};
  static const std::map<std::string, Kind> kinds = {
      {"plain", {AddressKind::Plain, 0, {base, offset}}},
      {"global32", {AddressKind::Global, 32, {base, offset, {90, 1}, described}}},
      {"global64", {AddressKind::Global, 64, {base, offset, {90, 1}, described}}},
      {"reduction64", {AddressKind::Reduction, 64, {base, offset, {90, 1}, described}}},
      {"atomic64", {AddressKind::Atomic, 64, {base, offset, {70, 1}, described}}},
      {"shared", {AddressKind::Shared, 0, {base, offset, {78, 2}}}},
      {"shared32", {AddressKind::Shared, 32, {base, offset, {78, 2}}}},
      {"shared64", {AddressKind::Shared, 64, {base, offset, {78, 2}}}},
      {"local32", {AddressKind::Local, 32, {base, offset}}},
      {"local64", {AddressKind::Local, 64, {base, offset}}},
      {"to", {AddressKind::AsyncTo, 0, {{16, 8}, {44, 20}}}},
      {"from64", {AddressKind::AsyncFrom, 64, {base, {32, 12}}}},
      {"constant", {AddressKind::Constant, 0, {base, bank}}},
      {"uconstant", {AddressKind::UniformConstant, 0, {bank}}},
      {"uconstantu", {AddressKind::IndexedUniformConstant, 0, {bank, {24, 6}, {91, 1}}}},
  };
  const auto entry = kinds.find(name);
  if (entry == kinds.end()) fail(name);
  operand.address = entry->second.kind, operand.at = entry->second.uniform_at;
  for (const Field& field : entry->second.fields) accounted.set(field.at, field.width);
  if (operand.at) accounted.set(operand.at, 6), accounted.set(91, 1);
}

// Parses an operand NAME@position: a register, a predicate or a number.
void parse_located(const std::string& name, const std::string& position, Operand& operand, Encoding& accounted) {
  struct Kind {
    OperandKind kind;
    bool uniform;
    uint32_t width;  // 0: the position includes it
  };
  static const std::map<std::string, Kind> kinds = {
      {"R", {OperandKind::Register, false, 8}},        {"UR", {OperandKind::UniformRegister, true, 6}},
      {"Pd", {OperandKind::Written, false, 3}},        {"UPd", {OperandKind::Written, true, 3}},
      {"Ps", {OperandKind::Read, false, 4}},           {"UPs", {OperandKind::Read, true, 4}},
      {"Pu", {OperandKind::Read, false, 4}},           {"B", {OperandKind::ConvergenceBarrier, false, 4}},
      {"S", {OperandKind::SpecialRegister, false, 8}}, {"N", {OperandKind::Number, false, 0}}};
  const auto entry = kinds.find(name);
  if (entry == kinds.end()) fail(name);
  const Field field = parse_field(position);
  operand.kind = entry->second.kind, operand.uniform = entry->second.uniform;
  operand.at = field.at, operand.width = entry->second.width ? entry->second.width : field.width;
  accounted.set(operand.at, operand.width);
  if (name == "Pu") operand.text = name, accounted.set(operand.at - 1, 1);
  if (name == "R" && position.find('.') != std::string::npos) operand.text = position.substr(position.find('.'));
}

void parse_letter(const std::string& text, uint32_t opcode, Operand& operand, Encoding& accounted) {
  constexpr uint32_t kBssy = 0x945;  // its target is shorter
  const size_t dot = text.find('.');
  const std::string name = text.substr(0, dot);
  if (name == "a" || name == "b" || name == "c" || name == "w") {  // their bits depend on the form
    operand.kind = OperandKind::Slot, operand.slot = name[0];
    operand.suffix = suffix_of(dot == std::string::npos ? "" : text.substr(dot + 1));
  } else if (name == "Rd" || name == "URd") {
    operand.uniform = name[0] == 'U', operand.slot = 'd', operand.at = 16, operand.width = operand.uniform ? 6 : 8;
    operand.kind = operand.uniform ? OperandKind::UniformRegister : OperandKind::Register;
    accounted.set(operand.at, operand.width);
  } else if (name == "T" || name == "O") {
    operand.kind = OperandKind::Target, operand.text = name, operand.at = 34, operand.width = opcode == kBssy ? 30 : 48;
    accounted.set(operand.at, operand.width);
  } else if (name == "L") {
    operand.kind = OperandKind::Table, accounted.set(64, 3), accounted.set(72, 5);
  } else if (name == "M") {
    operand.kind = OperandKind::Mask, accounted.set(24, 7), accounted.set(91, 1);
  } else if (name == "Q") {
    operand.kind = OperandKind::Scoreboards, accounted.set(32, 15);
  } else {
    fail(text);
  }
}

Operand parse_operand(std::string text, uint32_t opcode, Encoding& accounted) {
  Operand operand;
  while (text[0] == '[' && (text[1] == '!' || (text[1] >= '0' && text[1] <= '9'))) {
    const size_t close = text.find(']');
    const bool set = text[1] != '!';  // "[74]" or "[!74]": the operand is present only if the bit is (not) set
    operand.conditions.push_back({number(text.substr(set ? 1 : 2)), set});
    accounted.set(operand.conditions.back().bit, 1);
    text = text.substr(close + 1);
  }
  if (text[0] == '=') {
    operand.text = text.substr(1);
    return operand;
  }
  if (text.back() == '?') operand.optional = true, text.pop_back();
  const size_t at_sign = text.find('@');
  if (text[0] == '[') operand.kind = OperandKind::Address, parse_address(text.substr(1, text.size() - 2), operand, accounted);
  else if (at_sign != std::string::npos) parse_located(text.substr(0, at_sign), text.substr(at_sign + 1), operand, accounted);
  else parse_letter(text, opcode, operand, accounted);
  return operand;
}

// The guard of an instruction that writes a uniform register is a uniform predicate.
bool has_uniform_guard(const Row& row) {
  if (row.layout == Layout::Uniform) return true;
  if (row.mnemonic[0] != 'U' && row.mnemonic != "S2UR") return false;
  return true;
}

}  // namespace

Row parse_row(const RowText& text) {
  Row row;
  row.opcode = text.opcode, row.layout = text.layout, row.mnemonic = text.mnemonic, row.select = text.select;
  for (const char* form = text.forms; *form; form++) row.forms += *form;
  row.known.set(0, kGuardBits), row.known.set(kScheduling.at, kScheduling.width);
  if (row.layout == Layout::Uniform) row.known.set(91, 1);
  for (const std::string& part : split(text.modifiers, ' ')) row.modifiers.push_back(parse_modifier(part, row.known));
  for (const std::string& part : split(text.operands, ' ')) row.operands.push_back(parse_operand(part, row.opcode, row.known));
  for (const std::string& part : split(text.fixed, ' ')) {
    const size_t equals = part.find('=');
    row.fixed.push_back({parse_field(part.substr(0, equals)), number(part.substr(equals + 1))});
    row.known.set(row.fixed.back().field.at, row.fixed.back().field.width);
  }
  row.uniform_guard = has_uniform_guard(row);
  return row;
}

}  // namespace vgpu::sm80
