#include "lexer.h"

#include <cctype>

#include "../error.h"

namespace vgpu::ptx {
namespace {

// Reads on from `at`, behind what the token holds.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> all() {
    while (skip_blanks()) out_.push_back({text_.substr(at_, length()), line_}), at_ += out_.back().text.size();
    return std::move(out_);
  }

 private:
  // Past blanks and comments; false at the end.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') line_++;
      if (std::isspace(static_cast<unsigned char>(c)) || c == 0) at_++;
      else if (starts("//")) at_ = std::min(text_.find('\n', at_), text_.size());
      else if (starts("/*")) skip_comment();
      else return true;
    }
    return false;
  }

  void skip_comment() {
    size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) throw Unsupported("a comment without an end");
    for (; at_ < end + 2; at_++) line_ += text_[at_] == '\n';
  }

  size_t length() const {
    if (text_[at_] == '"') {
      size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) throw Unsupported("a string without an end");
      return end + 1 - at_;
    }
    size_t n = 0;
    // `.reg.b32` are two: directives need no blank between them, and an op's modifiers never come first.
    while (at_ + n < text_.size() && is_word(text_[at_ + n]) && !(n && text_[at_] == '.' && text_[at_ + n] == '.')) n++;
    return n ? n : 1;
  }

  bool starts(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> out_;
};

}  // namespace

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<Token> tokens(std::string_view text) { return Lexer(text).all(); }

}  // namespace vgpu::ptx
