// Constants in PTX: numbers, and constant expressions.
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

// Returns whether an expression can begin with this token.
bool begins_constant(std::string_view text);

// Parses the expression in tokens[at, end) and moves `at` behind it.  Throws Unsupported, with the line, if it is invalid.
Constant constant(const std::vector<Token>& tokens, size_t& at, size_t end);

// Converts a constant to the bits of `type`; returns false if the type does not permit it.
bool bits_as(const Constant& constant, std::string_view type, uint64_t& bits);

}  // namespace vgpu::ptx
