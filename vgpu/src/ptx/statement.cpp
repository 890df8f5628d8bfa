// A statement's words, and its operands as they are written.
#include <algorithm>

#include "core/error.h"
#include "decoder.h"
#include "special_registers.h"

namespace vgpu {

bool is_in_group(std::string_view group, std::string_view word) {
  for (size_t at = 0; at <= group.size();) {
    size_t bar = std::min(group.find('|', at), group.size());
    if (group.substr(at, bar - at) == word) return true;
    at = bar + 1;
  }
  return false;
}

bool Statement::has(std::string_view word) const {
  return std::find(qualifiers.begin(), qualifiers.end(), word) != qualifiers.end();
}

// A modifier that a family does not know must not be left out in silence: the result would be another instruction's.
bool Statement::allows_only(std::initializer_list<std::string_view> groups, size_t types) const {
  uint64_t used = 0;
  size_t found = 0;
  for (std::string_view word : qualifiers) {
    if (ptx::size_of(word)) {
      found++;
      continue;
    }
    size_t k = 0;
    while (k < groups.size() && !is_in_group(groups.begin()[k], word)) k++;
    if (k == groups.size() || used >> k & 1) return false;
    used |= 1ull << k;
  }
  return found == types;
}

std::string_view Statement::qualifier_of(std::string_view group) const {
  auto found =
      std::find_if(qualifiers.begin(), qualifiers.end(), [group](std::string_view word) { return is_in_group(group, word); });
  return found == qualifiers.end() ? std::string_view() : *found;
}

std::string_view Statement::type(size_t from_end) const {
  return from_end < qualifiers.size() ? qualifiers[qualifiers.size() - 1 - from_end] : std::string_view();
}

// One operand, or two of `d|p`.
Operand Decoder::operand(size_t& at, size_t to) const {
  Operand first = single(at, to);
  if (at >= to || tokens_[at].text != "|") return first;
  Operand both;
  both.kind = Operand::Vector;
  both.parts = {first, single(++at, to)};
  return both;
}

// Does `(.u64)` or the like begin here?
bool Decoder::casts(size_t at, size_t to) const {
  return at + 2 < to && tokens_[at].text == "(" && (tokens_[at + 1].text == ".u64" || tokens_[at + 1].text == ".s64");
}

// `{a, b}`, or `(a, b)`.
Operand Decoder::list(size_t& at, size_t to) const {
  Operand o;
  o.kind = Operand::Vector;
  const std::string_view close = text(at, to) == "{" ? "}" : ")";
  for (at++; at < to && text(at, to) != close;) {
    if (is_in_group("{|(|[", text(at, to)))
      throw Unsupported("line " + std::to_string(tokens_[at].line) + ": a list in another");
    o.parts.push_back(single(at, to));
    if (text(at, to) == ",") at++;
    else if (text(at, to) != close) throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": a list without end");
  }
  at++;
  return o;
}

// `[a+8]`; of a texture or a surface with coordinates: `[a, {x, y}]`.
Operand Decoder::address(size_t& at, size_t to) const {
  if (text(at + 1, to) == "[" || text(at + 1, to) == "{")
    throw Unsupported("line " + std::to_string(tokens_[at].line) + ": an address in another");
  Operand o = single(++at, to);
  o.kind = Operand::Address;
  while (text(at, to) == ",") {
    if (text(++at, to) == "[") throw Unsupported("line " + std::to_string(tokens_[at].line) + ": an address in another");
    o.parts.push_back(single(at, to));
  }
  if (text(at, to) != "]") throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": an address without end");
  at++;
  return o;
}

Operand Decoder::single(size_t& at, size_t to) const {
  if (text(at, to) == "{" || (text(at, to) == "(" && !casts(at, to))) return list(at, to);
  if (text(at, to) == "[") return address(at, to);
  Operand o;
  const bool marked = text(at, to) == "!" || text(at, to) == "-";
  if (ptx::begins_constant(text(marked ? at + 1 : at, to)) || (marked && text(at + 1, to) == "(") || casts(at, to)) {
    o.kind = Operand::Literal;
    o.text = text(at, to);
    o.constant = ptx::constant(tokens_, at, to);
    return o;
  }
  if (marked) (text(at++, to) == "!" ? o.inverted : o.negative) = true;
  o.text = text(at++, to);
  if (o.text.empty() || !ptx::is_word(o.text[0]))
    throw Unsupported("line " + std::to_string(tokens_[std::min(at, to) - 1].line) + ": an operand is missing");
  o.kind = find_register(o.text) || special_register_of(o.text) ? Operand::Register : Operand::Name;
  if (text(at, to) == "+" || text(at, to) == "-") {
    if (text(at, to) == "+") at++;
    ptx::Constant by = ptx::constant(tokens_, at, to);
    if (by.real()) throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": an offset that is no integer");
    o.offset = static_cast<int64_t>(by.bits);
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
