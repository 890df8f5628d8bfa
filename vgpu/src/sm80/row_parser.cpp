// Parses a row's text: modifiers, operands, and the bits that must be as they are.
#include "row_parser.h"

#include <map>
#include <sstream>
#include <stdexcept>

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kGuardBits = 16;       // the opcode and the guard, from bit 0 on
constexpr Field kScheduling = {105, 23};  // stalls and scoreboards: without meaning where all is done in order

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, by);)
    if (!one.empty()) parts.push_back(one);
  return parts;
}

[[noreturn]] void fail(const std::string& what) { throw std::logic_error("instructions.def: " + what); }

uint32_t number(const std::string& text) { return static_cast<uint32_t>(std::stoul(text)); }

// "75:2"; one bit where no width is given.
Field parse_field(const std::string& text) {
  const size_t colon = text.find(':');
  return {number(text), colon == std::string::npos ? 1 : number(text.substr(colon + 1))};
}

Modifier parse_modifier(const std::string& text, Encoding& known) {
  const size_t open = text.find('{');
  if (open == std::string::npos || text.back() != '}') fail(text);
  Modifier made;
  for (const std::string& part : split(text.substr(0, open), '+')) {
    made.fields.push_back(parse_field(part));
    known.set(made.fields.back().at, made.fields.back().width);
  }
  for (const std::string& name : split(text.substr(open + 1, text.size() - open - 2), '|'))
    made.names.push_back(name == "-" ? "" : name);
  uint32_t width = 0;
  for (const Field& one : made.fields) width += one.width;
  if (width == 1 && made.names.size() == 1) made.names.insert(made.names.begin(), "");
  if (made.names.size() > size_t(1) << width) fail(text);
  made.names.resize(size_t(1) << width, "!");
  return made;
}

Suffix suffix_of(const std::string& word) {
  static const std::map<std::string, Suffix> known = {{"", Suffix::None},      {"neg", Suffix::Negate},  {"real", Suffix::Real},
                                                      {"not", Suffix::Invert}, {"carry", Suffix::Carry}, {"half", Suffix::Half},
                                                      {"part", Suffix::Part}};
  const auto found = known.find(word);
  if (found == known.end()) fail(word);
  return found->second;
}

void parse_address(const std::string& name, Operand& one, Encoding& known) {
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
  const auto found = kinds.find(name);
  if (found == kinds.end()) fail(name);
  one.address = found->second.kind, one.at = found->second.uniform_at;
  for (const Field& field : found->second.fields) known.set(field.at, field.width);
  if (one.at) known.set(one.at, 6), known.set(91, 1);
}

// What stands before @, where it is a register, a predicate or a number.
void parse_located(const std::string& name, const std::string& place, Operand& one, Encoding& known) {
  struct Kind {
    OperandKind kind;
    bool uniform;
    uint32_t width;  // 0: given with the place
  };
  static const std::map<std::string, Kind> kinds = {
      {"R", {OperandKind::Register, false, 8}},        {"UR", {OperandKind::UniformRegister, true, 6}},
      {"Pd", {OperandKind::Written, false, 3}},        {"UPd", {OperandKind::Written, true, 3}},
      {"Ps", {OperandKind::Read, false, 4}},           {"UPs", {OperandKind::Read, true, 4}},
      {"Pu", {OperandKind::Read, false, 4}},           {"B", {OperandKind::ConvergenceBarrier, false, 4}},
      {"S", {OperandKind::SpecialRegister, false, 8}}, {"N", {OperandKind::Number, false, 0}}};
  const auto found = kinds.find(name);
  if (found == kinds.end()) fail(name);
  const Field field = parse_field(place);
  one.kind = found->second.kind, one.uniform = found->second.uniform;
  one.at = field.at, one.width = found->second.width ? found->second.width : field.width;
  known.set(one.at, one.width);
  if (name == "Pu") one.text = name, known.set(one.at - 1, 1);
  if (name == "R" && place.find('.') != std::string::npos) one.text = place.substr(place.find('.'));
}

void parse_letter(const std::string& text, uint32_t opcode, Operand& one, Encoding& known) {
  constexpr uint32_t kBssy = 0x945;  // its target is shorter
  const size_t dot = text.find('.');
  const std::string name = text.substr(0, dot);
  if (name == "a" || name == "b" || name == "c" || name == "w") {  // their bits depend on the form
    one.kind = OperandKind::Slot, one.slot = name[0];
    one.suffix = suffix_of(dot == std::string::npos ? "" : text.substr(dot + 1));
  } else if (name == "Rd" || name == "URd") {
    one.uniform = name[0] == 'U', one.slot = 'd', one.at = 16, one.width = one.uniform ? 6 : 8;
    one.kind = one.uniform ? OperandKind::UniformRegister : OperandKind::Register;
    known.set(one.at, one.width);
  } else if (name == "T" || name == "O") {
    one.kind = OperandKind::Target, one.text = name, one.at = 34, one.width = opcode == kBssy ? 30 : 48;
    known.set(one.at, one.width);
  } else if (name == "L") {
    one.kind = OperandKind::Table, known.set(64, 3), known.set(72, 5);
  } else if (name == "M") {
    one.kind = OperandKind::Mask, known.set(24, 7), known.set(91, 1);
  } else if (name == "Q") {
    one.kind = OperandKind::Scoreboards, known.set(32, 15);
  } else {
    fail(text);
  }
}

Operand parse_operand(std::string text, uint32_t opcode, Encoding& known) {
  Operand one;
  while (text[0] == '[' && (text[1] == '!' || (text[1] >= '0' && text[1] <= '9'))) {
    const size_t close = text.find(']');
    const bool set = text[1] != '!';
    one.conditions.push_back({number(text.substr(set ? 1 : 2)), set});
    known.set(one.conditions.back().bit, 1);
    text = text.substr(close + 1);
  }
  if (text[0] == '=') {
    one.text = text.substr(1);
    return one;
  }
  if (text.back() == '?') one.optional = true, text.pop_back();
  const size_t at = text.find('@');
  if (text[0] == '[') one.kind = OperandKind::Address, parse_address(text.substr(1, text.size() - 2), one, known);
  else if (at != std::string::npos) parse_located(text.substr(0, at), text.substr(at + 1), one, known);
  else parse_letter(text, opcode, one, known);
  return one;
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
  for (const std::string& one : split(text.modifiers, ' ')) row.modifiers.push_back(parse_modifier(one, row.known));
  for (const std::string& one : split(text.operands, ' ')) row.operands.push_back(parse_operand(one, row.opcode, row.known));
  for (const std::string& one : split(text.fixed, ' ')) {
    const size_t equals = one.find('=');
    row.fixed.push_back({parse_field(one.substr(0, equals)), number(one.substr(equals + 1))});
    row.known.set(row.fixed.back().field.at, row.fixed.back().field.width);
  }
  row.uniform_guard = has_uniform_guard(row);
  return row;
}

}  // namespace vgpu::sm80
