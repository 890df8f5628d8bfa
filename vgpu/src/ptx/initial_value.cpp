// Evaluates the initial values of module variables.
#include "initial_value.h"

#include <cstring>

#include "constant.h"
#include "core/error.h"

namespace vgpu {

void Initial::reject(const char* why) const {
  const ptx::Token& token = tokens_[at_ < tokens_.size() ? at_ : tokens_.size() - 1];
  throw Unsupported("line " + std::to_string(token.line) + ": " + one_.name + ": " + why + " at '" + std::string(token.text) +
                    "'");
}

void Initial::need(std::string_view text) {
  if (!is(text)) reject("an initial value that is not known");
  at_++;
}

void Initial::write(uint8_t* at) {
  fill(0, at, one_.size);
  if (at_ != tokens_.size()) reject("an initial value that is not known");
}

// The part of a row that a list does not name stays zero.
void Initial::fill(size_t level, uint8_t* at, uint32_t bytes) {
  if (level == one_.extents.size()) return value(at);
  need("{");
  const uint32_t most = one_.extents[level];
  for (uint32_t k = 0;; k++) {
    if (k == most) reject("more values than it has room for");
    fill(level + 1, at + k * (bytes / most), bytes / most);
    if (is("}")) break;
    need(",");
  }
  at_++;
}

void Initial::value(uint8_t* at) {
  const uint32_t width = ptx::size_of(one_.type);
  if (at_ >= tokens_.size()) reject("no initial value");
  if (width > sizeof(uint64_t)) reject("an initial value of more than 64 bits");
  const uint64_t bits = ptx::begins_constant(tokens_[at_].text) || is("(") || is("!") ? number() : address();
  std::memcpy(at, &bits, width);
}

// A constant, or a byte of an address: 0xff00(name).
uint64_t Initial::number() {
  const size_t from = at_;
  ptx::Constant constant = ptx::constant(tokens_, at_, tokens_.size());
  uint64_t bits = 0;
  if (is("(")) {
    const int by = constant.bits ? __builtin_ctzll(constant.bits) : 0;
    if (constant.real() || constant.bits >> by != 0xff || by % 8) at_ = from, reject("a mask that names no byte");
    at_++;
    bits = (address() >> by) & 0xff;
    need(")");
  } else if (!ptx::bits_as(constant, one_.type, bits)) {
    at_ = from, reject("a value of another type");
  }
  return bits;
}

// name, generic(name), and either with an offset.
uint64_t Initial::address() {
  const bool generic = is("generic") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "(";
  if (generic) at_ += 2;
  if (at_ >= tokens_.size() || !ptx::is_word(tokens_[at_].text[0])) reject("an initial value that is not known");
  const size_t named = at_++;
  if (generic) need(")");
  uint64_t offset = 0;
  const bool moved = is("+") || is("-");
  if (moved) {
    ptx::Constant by = ptx::constant(tokens_, at_, tokens_.size());
    if (by.real()) reject("an offset that is no integer");
    offset = by.bits;
  }
  const uint64_t found = address_of_(std::string(tokens_[named].text), moved);
  if (!found) at_ = named, reject("an initial value that is not known");
  return found + offset;
}

}  // namespace vgpu
