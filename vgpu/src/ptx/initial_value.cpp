// Evaluates the initial values of module variables.
#include "initial_value.h"

#include <algorithm>
#include <cstring>

#include "constant.h"
#include "core/error.h"

namespace vgpu {

void InitialValue::reject(const char* why) const {
  const ptx::Token& token = tokens_[at_ < tokens_.size() ? at_ : tokens_.size() - 1];
  throw Unsupported("line " + std::to_string(token.line) + ": " + declaration_.name + ": " + why + " at '" +
                    std::string(token.text) + "'");
}

void InitialValue::expect(std::string_view text) {
  if (!is(text)) reject("an initial value that is not known");
  at_++;
}

void InitialValue::write(uint8_t* memory) {
  write_level(0, memory, declaration_.size);
  if (at_ != tokens_.size()) reject("an initial value that is not known");
}

// Writes one level of a nested list; elements that the list lacks stay zero.
void InitialValue::write_level(size_t level, uint8_t* memory, uint32_t bytes) {
  if (level == declaration_.extents.size()) return write_value(memory);
  expect("{");
  const uint32_t extent = declaration_.extents[level];
  if (extent == 0) reject("an initial value of an array of no elements");
  for (uint32_t k = 0; !is("}"); k++) {
    if (k == extent) reject("more values than it has room for");
    write_level(level + 1, memory + k * (bytes / extent), bytes / extent);
    if (is("}")) break;
    expect(",");
    if (is("}")) reject("an initial value that is not known");
  }
  at_++;
}

void InitialValue::write_value(uint8_t* memory) {
  const uint32_t width = ptx::size_of(declaration_.type);
  if (at_ >= tokens_.size()) reject("no initial value");
  const bool is_number = ptx::begins_constant(tokens_[at_].text) || is("(") || is("!");
  if (!is_number && !has_type({"u32", "u64"})) reject("an address in another type");
  const uint64_t bits = is_number ? parse_number() : parse_address();
  std::memcpy(memory, &bits, std::min<size_t>(width, sizeof bits));  // the upper half of 128 bits stays zero
}

// Parses a constant, or a byte of an address such as 0xff00(name).
uint64_t InitialValue::parse_number() {
  const size_t begin = at_;
  ptx::Constant constant = ptx::constant(tokens_, at_, tokens_.size());
  uint64_t bits = 0;
  if (is("(")) {
    if (!has_type({"u8", "u32", "u64"})) reject("a byte of an address in another type");
    const int shift = constant.bits ? __builtin_ctzll(constant.bits) : 0;
    if (constant.real() || constant.bits >> shift != 0xff || shift % 8) at_ = begin, reject("a mask that names no byte");
    at_++;
    bits = (parse_address() >> shift) & 0xff;
    expect(")");
  } else if (!ptx::bits_as(constant, declaration_.type, bits)) {
    at_ = begin, reject("a value of another type");
  }
  return bits;
}

bool InitialValue::has_type(std::initializer_list<std::string_view> types) const {
  return std::find(types.begin(), types.end(), declaration_.type) != types.end();
}

// Parses name or generic(name), with an optional offset.
uint64_t InitialValue::parse_address() {
  const bool generic = is("generic") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "(";
  if (generic) at_ += 2;
  if (at_ >= tokens_.size() || !ptx::is_word_character(tokens_[at_].text[0])) reject("an initial value that is not known");
  const size_t name_position = at_++;
  if (generic) expect(")");
  uint64_t offset = 0;
  const bool has_offset = is("+");
  if (has_offset) {
    ptx::Constant constant = ptx::constant(tokens_, at_, tokens_.size());
    if (constant.real()) reject("an offset that is no integer");
    offset = constant.bits;
  }
  const std::string name(tokens_[name_position].text);
  const uint64_t result = name == declaration_.name ? 0 : address_of_(name, generic || has_offset);
  if (!result) at_ = name_position, reject("an initial value that is not known");
  return result + offset;
}

}  // namespace vgpu
