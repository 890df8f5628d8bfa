// Qualifiers of a PTX statement (the words behind the dots, among them types), and parsing of its operands.
#include <algorithm>

#include "core/error.h"
#include "decoder.h"
#include "special_registers.h"

namespace vgpu {

// group: qualifiers that exclude each other, such as "rn|rz|rm|rp".
bool is_in_group(std::string_view group, std::string_view qualifier) {
  for (size_t begin = 0; begin <= group.size();) {
    size_t bar = std::min(group.find('|', begin), group.size());
    if (group.substr(begin, bar - begin) == qualifier) return true;
    begin = bar + 1;
  }
  return false;
}

bool Statement::has(std::string_view qualifier) const {
  return std::find(qualifiers.begin(), qualifiers.end(), qualifier) != qualifiers.end();
}

// Unknown qualifiers must not be ignored, since they change the instruction's result.  types: how many qualifiers are types.
bool Statement::allows_only(std::initializer_list<std::string_view> groups, size_t types) const {
  uint64_t used = 0;
  size_t type_count = 0;
  for (std::string_view qualifier : qualifiers) {
    if (ptx::size_of(qualifier)) {
      type_count++;
      continue;
    }
    size_t k = 0;
    while (k < groups.size() && !is_in_group(groups.begin()[k], qualifier)) k++;
    if (k == groups.size() || used >> k & 1) return false;
    used |= 1ull << k;
  }
  return type_count == types;
}

std::string_view Statement::qualifier_of(std::string_view group) const {
  auto match = std::find_if(qualifiers.begin(), qualifiers.end(),
                            [group](std::string_view qualifier) { return is_in_group(group, qualifier); });
  return match == qualifiers.end() ? std::string_view() : *match;
}

std::string_view Statement::type(size_t from_end) const {
  return from_end < qualifiers.size() ? qualifiers[qualifiers.size() - 1 - from_end] : std::string_view();
}

// Parses one operand, or the two of `d|p`.
Operand Decoder::parse_operand(size_t& at, size_t end) const {
  Operand first = parse_single(at, end);
  if (at >= end || tokens_[at].text != "|") return first;
  Operand pair;
  pair.kind = Operand::Vector;
  pair.parts = {first, parse_single(++at, end)};
  if (first.text == "_" && pair.parts[1].text == "_")
    throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": two results that nothing receives");
  return pair;
}

// Parses `{a, b}` or `(a, b)`.
Operand Decoder::parse_list(size_t& at, size_t end) const {
  Operand o;
  o.kind = Operand::Vector;
  const std::string_view close = text(at, end) == "{" ? "}" : ")";
  for (at++; at < end && text(at, end) != close;) {
    if (is_in_group("{|[", text(at, end)))
      throw Unsupported("line " + std::to_string(tokens_[at].line) + ": a list in another");
    o.parts.push_back(parse_single(at, end));
    if (text(at, end) == ",") at++;
    else if (text(at, end) != close) throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": a list without end");
  }
  at++;
  return o;
}

// Parses an address `[a+8]`, or one of a texture or surface with coordinates, `[a, {x, y}]`.
Operand Decoder::parse_address(size_t& at, size_t end) const {
  if (text(at + 1, end) == "[" || text(at + 1, end) == "{")
    throw Unsupported("line " + std::to_string(tokens_[at].line) + ": an address in another");
  Operand o = parse_single(++at, end);
  o.kind = Operand::Address;
  while (text(at, end) == ",") {
    if (text(++at, end) == "[") throw Unsupported("line " + std::to_string(tokens_[at].line) + ": an address in another");
    o.parts.push_back(parse_single(at, end));
  }
  if (text(at, end) != "]") throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": an address without end");
  at++;
  return o;
}

Operand Decoder::parse_single(size_t& at, size_t end) const {
  if (text(at, end) == "{") return parse_list(at, end);
  if (text(at, end) == "[") return parse_address(at, end);
  Operand o;
  const bool has_sign = text(at, end) == "!" || text(at, end) == "-";
  const std::string_view first = text(has_sign ? at + 1 : at, end);
  if (ptx::begins_constant(first) || first == "(") {
    o.kind = Operand::Literal;
    o.text = text(at, end);
    o.constant = ptx::constant(tokens_, at, end);
    return o;
  }
  if (has_sign) (text(at++, end) == "!" ? o.inverted : o.negative) = true;
  o.text = text(at++, end);
  if (o.text.empty() || !ptx::is_word_character(o.text[0]))
    throw Unsupported("line " + std::to_string(tokens_[std::min(at, end) - 1].line) + ": an operand is missing");
  o.kind = find_register(o.text) || special_register_of(o.text) ? Operand::Register : Operand::Name;
  if (text(at, end) == "+" || text(at, end) == "-") {
    if (text(at, end) == "+") at++;
    ptx::Constant offset = ptx::constant(tokens_, at, end);
    if (offset.real()) throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": an offset that is no integer");
    o.offset = static_cast<int64_t>(offset.bits);
  }
  return o;
}

RoundingMode rounding_mode_of(const Statement& s) {
  if (s.has("rz") || s.has("rzi")) return RoundingMode::Zero;
  if (s.has("rm") || s.has("rmi")) return RoundingMode::Down;
  if (s.has("rp") || s.has("rpi")) return RoundingMode::Up;
  return RoundingMode::Nearest;
}

}  // namespace vgpu
