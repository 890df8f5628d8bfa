// PTX text as tokens: words (with their dots), numbers, and single marks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::ptx {

struct Token {
  std::string_view text;  // into the module's text
  uint32_t line;          // of the module, from 1
};

// Comments are left out; a string is one token with its quotes.  Unsupported: an unfinished comment or string.
std::vector<Token> tokens(std::string_view text);

bool is_word(char c);

}  // namespace vgpu::ptx
