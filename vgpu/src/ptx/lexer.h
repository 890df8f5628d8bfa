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
// whole_blocks: what stands in braces is one token with them, to be read when it is needed (a module holds thousands of
// kernels, of which a program launches a few); not so behind a `=`.  line: of the text's first.
std::vector<Token> tokenize(std::string_view text, bool whole_blocks = false, uint32_t line = 1);

bool is_word(char c);

}  // namespace vgpu::ptx
