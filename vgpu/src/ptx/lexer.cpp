// Splits PTX text into tokens.
#include "lexer.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace vgpu::ptx {
namespace {

class Lexer {
 public:
  Lexer(std::string_view text, uint32_t line) : text_(text), line_(line) {}

  std::vector<Token> tokenize_all(bool blocks_as_tokens) {
    while (skip_blanks()) {
      bool is_block = blocks_as_tokens && text_[at_] == '{' && !in_value_;
      size_t size = is_block ? block_length() : token_length();
      tokens_.push_back({text_.substr(at_, size), line_});
      if (size == 1 && (text_[at_] == '=' || text_[at_] == ';')) in_value_ = text_[at_] == '=';
      if (is_block) line_ += static_cast<uint32_t>(std::count(text_.begin() + at_, text_.begin() + at_ + size, '\n'));
      at_ += size;
    }
    return std::move(tokens_);
  }

 private:
  // Skips blanks and comments; returns false at the end of the text.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') line_++;
      if (std::isspace(static_cast<unsigned char>(c)) || c == 0) at_++;
      else if (starts_with("//")) at_ = std::min(text_.find('\n', at_), text_.size());
      else if (starts_with("/*")) skip_comment();
      else return true;
    }
    return false;
  }

  void skip_comment() {
    size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) throw Unsupported("a comment without an end");
    for (; at_ < end + 2; at_++) line_ += text_[at_] == '\n';
  }

  size_t token_length() const {
    if (text_[at_] == '"') {
      size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) throw Unsupported("a string without an end");
      return end + 1 - at_;
    }
    size_t n = 0;
    // `.reg.b32` are two tokens: directives need no blank between them, but qualifiers belong to their op.
    while (at_ + n < text_.size() && is_word_character(text_[at_ + n]) && !(n && text_[at_] == '.' && text_[at_ + n] == '.'))
      n++;
    if (ends_before_exponent(n))
      for (n++; at_ + n < text_.size() && is_digit(text_[at_ + n]);) n++;
    return n ? n : 1;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // Returns whether the n characters here are a decimal number up to its `e`, and a sign and a digit follow, as in `1.5e-3`.
  bool ends_before_exponent(size_t n) const {
    if (n < 2 || at_ + n + 1 >= text_.size() || (text_[at_ + n - 1] | 0x20) != 'e') return false;
    for (size_t k = 0; k < n - 1; k++)
      if (!is_digit(text_[at_ + k]) && text_[at_ + k] != '.') return false;
    return (text_[at_ + n] == '-' || text_[at_ + n] == '+') && is_digit(text_[at_ + n + 1]);
  }

  // Returns the length of the block that begins here, up to its closing brace.
  size_t block_length() const {
    size_t depth = 0;
    for (size_t k = at_; k < text_.size(); k++) {
      char c = text_[k];
      if (c != '{' && c != '}' && c != '"' && c != '/') continue;
      if (c == '{') depth++;
      else if (c == '}' && --depth == 0) return k + 1 - at_;
      else if (c == '"') k = text_.find('"', k + 1);
      else if (text_.compare(k, 2, "//") == 0) k = text_.find('\n', k);
      else if (text_.compare(k, 2, "/*") == 0) k = text_.find("*/", k + 2);
      if (k == std::string_view::npos) break;
    }
    throw Unsupported("line " + std::to_string(line_) + ": '{': nothing closes it");
  }

  bool starts_with(std::string_view prefix) const { return text_.compare(at_, prefix.size(), prefix) == 0; }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_;
  bool in_value_ = false;  // behind a `=`
  std::vector<Token> tokens_;
};

}  // namespace

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<Token> tokenize(std::string_view text, bool blocks_as_tokens, uint32_t line) {
  return Lexer(text, line).tokenize_all(blocks_as_tokens);
}

}  // namespace vgpu::ptx
