// Splits PTX text into tokens: words (with their dots), numbers, strings and punctuation marks.
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

// Comments are skipped; a string is one token with its quotes.  Throws Unsupported for an unfinished comment or string.
// blocks_as_tokens: a block in braces is one token, which is tokenized when it is needed (a module has thousands of kernels, of
// which a program launches a few), except behind `=`.  line: number of the first line.
std::vector<Token> tokenize(std::string_view text, bool blocks_as_tokens = false, uint32_t line = 1);

bool is_word_character(char c);

}  // namespace vgpu::ptx
