// Constants as PTX writes them: numbers, and expressions of them that are known when the text is read.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lexer.h"

namespace vgpu::ptx {

struct Constant {
  enum Kind : uint8_t { Signed, Unsigned, Single, Double } kind = Signed;  // Single: 0fXXXXXXXX
  uint64_t bits = 0;

  bool real() const { return kind == Single || kind == Double; }
};

// Does an expression begin with this token?
bool begins_constant(std::string_view text);

// What tokens[at, end) hold from `at` on; `at` goes behind it.  Unsupported, with the line: no such expression.
Constant constant(const std::vector<Token>& tokens, size_t& at, size_t end);

// Its bits as an operand or an initial value of `type`; false: such a type does not take it.
bool bits_as(const Constant& constant, std::string_view type, uint64_t& bits);

}  // namespace vgpu::ptx
