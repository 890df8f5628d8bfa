// Evaluates constant expressions of PTX.
#include "constant.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "module.h"

namespace vgpu::ptx {
namespace {

constexpr int kMaxDepth = 64;  // of parentheses and signs

[[noreturn]] void reject(const Token& at, const char* why) {
  throw Unsupported("line " + std::to_string(at.line) + ": " + why + " at '" + std::string(at.text) + "'");
}

bool is_exact(std::string_view word) { return word.size() > 2 && word[0] == '0' && std::strchr("fFdD", word[1]); }

uint64_t hexadecimal(const Token& token, size_t digits) {
  std::string word(token.text.substr(2));
  char* end = nullptr;
  uint64_t bits = std::strtoull(word.c_str(), &end, 16);
  if (word.size() != digits || *end) reject(token, "no number");
  return bits;
}

Constant integer(const Token& token) {
  std::string word(token.text);
  bool binary = word.size() > 2 && word[0] == '0' && (word[1] == 'b' || word[1] == 'B');
  char* end = nullptr;
  errno = 0;
  Constant made;
  made.bits = std::strtoull(word.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
  if (*end == 'U') made.kind = Constant::Unsigned, end++;
  if (*end || errno == ERANGE) reject(token, "no number");
  if (made.bits >> 63) made.kind = Constant::Unsigned;
  return made;
}

Constant number(const Token& token) {
  std::string_view word = token.text;
  if (word == "WARP_SZ") return {Constant::Signed, 32};
  if (is_exact(word)) {
    bool single = word[1] == 'f' || word[1] == 'F';
    return {single ? Constant::Single : Constant::Double, hexadecimal(token, single ? 8 : 16)};
  }
  if (word.find_first_of("xX") == word.npos && word.find_first_of(".eE") != word.npos) {
    std::string text(word);
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (*end) reject(token, "no number");
    if (std::isinf(value)) reject(token, "a number that no type has room for");
    Constant made{Constant::Double, 0};
    std::memcpy(&made.bits, &value, sizeof value);
    return made;
  }
  return integer(token);
}

// Two-sided operators, by how tightly they bind; longer ones before those that they begin with.
struct Operator {
  std::string_view text;
  int binds;
};
constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
                                   {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
                                   {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

class Expression {
 public:
  Expression(const std::vector<Token>& tokens, size_t& at, size_t end) : tokens_(tokens), at_(at), end_(end) {}

  Constant whole() {
    Constant condition = binary(1);
    if (!is("?")) return condition;
    const Token& mark = tokens_[at_++];
    Constant yes = whole();
    if (!is(":")) reject(mark, "no ':' follows");
    at_++;
    Constant no = whole();
    if (condition.real()) reject(mark, "a condition that is no integer");
    return condition.bits ? yes : no;
  }

 private:
  bool is(std::string_view text) const { return at_ < end_ && tokens_[at_].text == text; }

  // The operator here, of one token or of two that touch; tokens: how many.
  const Operator* next(size_t& tokens) const {
    for (const Operator& one : kOperators) {
      tokens = one.text.size();
      if (at_ + tokens > end_) continue;
      const char* first = tokens_[at_].text.data();
      bool same = true;
      for (size_t k = 0; k < tokens; k++)
        same = same && tokens_[at_ + k].text == one.text.substr(k, 1) && tokens_[at_ + k].text.data() == first + k;
      if (same) return &one;
    }
    return nullptr;
  }

  Constant binary(int least) {
    Constant left = unary();
    size_t tokens = 0;
    for (const Operator* op; (op = next(tokens)) && op->binds >= least;) {
      const Token& mark = tokens_[at_];
      at_ += tokens;
      left = applied(mark, op->text, left, binary(op->binds + 1));
    }
    return left;
  }

  static Constant applied(const Token& mark, std::string_view op, const Constant& x, const Constant& y) {
    if (x.real() || y.real()) reject(mark, "arithmetic of real constants");
    bool shifts = op == "<<" || op == ">>";
    bool without_sign = x.kind == Constant::Unsigned || (!shifts && y.kind == Constant::Unsigned);
    uint64_t a = x.bits, b = y.bits;
    Constant::Kind kind = without_sign ? Constant::Unsigned : Constant::Signed;
    bool holds = false;
    if (compared(op, without_sign, a, b, holds)) return {Constant::Signed, holds};
    if (op == "+") return {kind, a + b};
    if (op == "-") return {kind, a - b};
    if (op == "*") return {kind, a * b};
    if (op == "|") return {kind, a | b};
    if (op == "^") return {kind, a ^ b};
    if (op == "&") return {kind, a & b};
    if (shifts && b > 63) reject(mark, "a shift by more than 63");
    if (op == "<<") return {kind, a << b};
    if (op == ">>") return {kind, without_sign ? a >> b : static_cast<uint64_t>(static_cast<int64_t>(a) >> b)};
    return divided(mark, op == "/", x, y, kind);
  }

  // False: the operator compares nothing.
  static bool compared(std::string_view op, bool without_sign, uint64_t a, uint64_t b, bool& holds) {
    const bool less = without_sign ? a < b : static_cast<int64_t>(a) < static_cast<int64_t>(b);
    if (op == "||") holds = a || b;
    else if (op == "&&") holds = a && b;
    else if (op == "==") holds = a == b;
    else if (op == "!=") holds = a != b;
    else if (op == "<") holds = less;
    else if (op == ">") holds = !less && a != b;
    else if (op == "<=") holds = less || a == b;
    else if (op == ">=") holds = !less;
    else return false;
    return true;
  }

  static Constant divided(const Token& mark, bool quotient, const Constant& x, const Constant& y, Constant::Kind kind) {
    if (!y.bits) reject(mark, "a division by zero");
    if (kind == Constant::Unsigned) return {kind, quotient ? x.bits / y.bits : x.bits % y.bits};
    int64_t p = static_cast<int64_t>(x.bits), q = static_cast<int64_t>(y.bits);
    if (q == -1) return {kind, quotient ? 0 - x.bits : 0};
    return {kind, static_cast<uint64_t>(quotient ? p / q : p % q)};
  }

  Constant unary() {
    if (at_ >= end_) reject(tokens_[end_ ? end_ - 1 : 0], "no constant follows");
    const Token& token = tokens_[at_];
    if (++depth_ > kMaxDepth) reject(token, "too deep an expression");
    Constant made = token.text == "(" ? parenthesis() : is_sign(token) ? signed_one() : number_here();
    depth_--;
    return made;
  }

  static bool is_sign(const Token& token) {
    return token.text == "-" || token.text == "+" || token.text == "!" || token.text == "~";
  }

  Constant number_here() {
    const Token& token = tokens_[at_++];
    if (!is_literal(token.text) && token.text != "WARP_SZ") reject(token, "no constant");
    return number(token);
  }

  Constant signed_one() {
    const Token& sign = tokens_[at_++];
    if (at_ < end_ && is_exact(tokens_[at_].text)) reject(sign, "a sign before the bits of a number");
    Constant made = unary();
    if (sign.text == "+") return made;
    if (made.real() && sign.text != "-") reject(sign, "an operator that real constants do not have");
    if (made.real()) made.bits ^= 1ull << 63;
    else if (sign.text == "!") made = {Constant::Signed, made.bits == 0};
    else made.bits = sign.text == "-" ? 0 - made.bits : ~made.bits;
    return made;
  }

  // `(.u64) x`, or `(x)`.
  Constant parenthesis() {
    const Token& open = tokens_[at_++];
    bool to_signed = is(".s64"), cast = to_signed || is(".u64");
    Constant made;
    if (cast) at_++;
    else made = whole();
    if (!is(")")) reject(open, "nothing closes it");
    at_++;
    if (!cast) return made;
    made = unary();
    if (made.real()) reject(open, "a cast of a real constant");
    made.kind = to_signed ? Constant::Signed : Constant::Unsigned;
    return made;
  }

  const std::vector<Token>& tokens_;
  size_t& at_;
  const size_t end_;
  int depth_ = 0;
};

bool real_bits(const Constant& constant, std::string_view type, uint64_t& bits) {
  float single;
  double value;
  uint32_t low = static_cast<uint32_t>(constant.bits);
  std::memcpy(&single, &low, sizeof single);
  std::memcpy(&value, &constant.bits, sizeof value);
  if (constant.kind == Constant::Single) value = single;
  else single = static_cast<float>(value);
  if (type == "f32") return bits = 0, std::memcpy(&bits, &single, sizeof single), true;
  if (type == "f64") return std::memcpy(&bits, &value, sizeof value), true;
  bits = constant.bits;
  return type == (constant.kind == Constant::Single ? "b32" : "b64");
}

}  // namespace

bool begins_constant(std::string_view text) {
  return is_literal(text) || text == "-" || text == "~" || text == "WARP_SZ" || text == "+";
}

Constant constant(const std::vector<Token>& tokens, size_t& at, size_t end) { return Expression(tokens, at, end).whole(); }

bool bits_as(const Constant& constant, std::string_view type, uint64_t& bits) {
  if (constant.real()) return real_bits(constant, type, bits);
  bits = constant.bits;
  const bool paired = type.size() > 2 && type.substr(type.size() - 2) == "x2";
  return type.empty() || (type[0] != 'f' && type.substr(0, 2) != "bf" && !paired);
}

}  // namespace vgpu::ptx
