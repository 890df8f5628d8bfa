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

[[noreturn]] void reject(const Token& token, const char* why) {
  throw Unsupported("line " + std::to_string(token.line) + ": " + why + " at '" + std::string(token.text) + "'");
}

bool is_float_bits(std::string_view text) { return text.size() > 2 && text[0] == '0' && std::strchr("fFdD", text[1]); }

uint64_t parse_hexadecimal(const Token& token, size_t digits) {
  std::string text(token.text.substr(2));
  char* end = nullptr;
  uint64_t bits = std::strtoull(text.c_str(), &end, 16);
  if (text.size() != digits || *end) reject(token, "no number");
  return bits;
}

Constant parse_integer(const Token& token) {
  std::string text(token.text);
  bool binary = text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B');
  char* end = nullptr;
  errno = 0;
  Constant result;
  result.bits = std::strtoull(text.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
  if (*end == 'U') result.kind = Constant::Unsigned, end++;
  if (*end || errno == ERANGE) reject(token, "no number");
  if (result.bits >> 63) result.kind = Constant::Unsigned;
  return result;
}

Constant parse_number(const Token& token) {
  std::string_view token_text = token.text;
  if (token_text == "WARP_SZ") return {Constant::Signed, 32};
  if (is_float_bits(token_text)) {
    bool single = token_text[1] == 'f' || token_text[1] == 'F';
    return {single ? Constant::Single : Constant::Double, parse_hexadecimal(token, single ? 8 : 16)};
  }
  if (token_text.find_first_of("xX") == token_text.npos && token_text.find_first_of(".eE") != token_text.npos) {
    std::string text(token_text);
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (*end) reject(token, "no number");
    const bool is_zero = text.find_first_of("123456789") >= text.find_first_of("eE");
    if (std::isinf(value) || (value == 0 && !is_zero)) reject(token, "a number that no type has room for");
    Constant result{Constant::Double, 0};
    std::memcpy(&result.bits, &value, sizeof value);
    return result;
  }
  return parse_integer(token);
}

// Binary operators with their precedence; longer ones come before their prefixes.
struct Operator {
  std::string_view text;
  int precedence;
};
constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
                                   {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
                                   {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

class Expression {
 public:
  Expression(const std::vector<Token>& tokens, size_t& at, size_t end) : tokens_(tokens), at_(at), end_(end) {}

  Constant parse() {
    Constant condition = parse_binary(1);
    if (!is("?")) return condition;
    const Token& mark = tokens_[at_++];
    Constant yes = parse();
    if (!is(":")) reject(mark, "no ':' follows");
    at_++;
    Constant no = parse();
    if (condition.real() || yes.real() || no.real()) reject(mark, "a condition that is no integer");
    return condition.bits ? yes : no;
  }

 private:
  bool is(std::string_view text) const { return at_ < end_ && tokens_[at_].text == text; }

  // Returns the operator at this position, which has one token or two adjacent ones; tokens: receives their number.
  const Operator* find_operator(size_t& tokens) const {
    for (const Operator& candidate : kOperators) {
      tokens = candidate.text.size();
      if (at_ + tokens > end_) continue;
      const char* first = tokens_[at_].text.data();
      bool is_match = true;
      for (size_t k = 0; k < tokens; k++)
        is_match =
            is_match && tokens_[at_ + k].text == candidate.text.substr(k, 1) && tokens_[at_ + k].text.data() == first + k;
      if (is_match) return &candidate;
    }
    return nullptr;
  }

  Constant parse_binary(int min_precedence) {
    Constant left = parse_unary();
    size_t tokens = 0;
    for (const Operator* op; (op = find_operator(tokens)) && op->precedence >= min_precedence;) {
      const Token& mark = tokens_[at_];
      at_ += tokens;
      left = apply(mark, op->text, left, parse_binary(op->precedence + 1));
    }
    return left;
  }

  static Constant apply(const Token& mark, std::string_view op, const Constant& x, const Constant& y) {
    if (x.real() || y.real()) return apply_real(mark, op, x, y);
    bool is_shift = op == "<<" || op == ">>";
    bool is_unsigned = x.kind == Constant::Unsigned || (!is_shift && y.kind == Constant::Unsigned);
    uint64_t a = x.bits, b = y.bits;
    Constant::Kind kind = is_unsigned ? Constant::Unsigned : Constant::Signed;
    bool result_bit = false;
    if (apply_comparison(op, is_unsigned, a, b, result_bit)) return {Constant::Signed, result_bit};
    if (op == "+") return {kind, a + b};
    if (op == "-") return {kind, a - b};
    if (op == "*") return {kind, a * b};
    if (op == "|") return {kind, a | b};
    if (op == "^") return {kind, a ^ b};
    if (op == "&") return {kind, a & b};
    if (is_shift && b > 63) reject(mark, "a shift by more than 63");
    if (op == "<<") return {kind, a << b};
    if (op == ">>") return {kind, is_unsigned ? a >> b : static_cast<uint64_t>(static_cast<int64_t>(a) >> b)};
    return apply_division(mark, op == "/", x, y, kind);
  }

  static Constant apply_real(const Token& mark, std::string_view op, const Constant& x, const Constant& y) {
    if (x.kind != Constant::Double || y.kind != Constant::Double) reject(mark, "arithmetic of constants of two types");
    double a, b, value;
    std::memcpy(&a, &x.bits, sizeof a);
    std::memcpy(&b, &y.bits, sizeof b);
    if (op == "+") value = a + b;
    else if (op == "-") value = a - b;
    else if (op == "*") value = a * b;
    else if (op != "/") reject(mark, "an operator that real constants do not have");
    else if (b == 0) reject(mark, "a division by zero");
    else value = a / b;
    Constant result{Constant::Double, 0};
    std::memcpy(&result.bits, &value, sizeof value);
    return result;
  }

  // Returns false if the operator is not a comparison.
  static bool apply_comparison(std::string_view op, bool is_unsigned, uint64_t a, uint64_t b, bool& result_bit) {
    const bool less = is_unsigned ? a < b : static_cast<int64_t>(a) < static_cast<int64_t>(b);
    if (op == "||") result_bit = a || b;
    else if (op == "&&") result_bit = a && b;
    else if (op == "==") result_bit = a == b;
    else if (op == "!=") result_bit = a != b;
    else if (op == "<") result_bit = less;
    else if (op == ">") result_bit = !less && a != b;
    else if (op == "<=") result_bit = less || a == b;
    else if (op == ">=") result_bit = !less;
    else return false;
    return true;
  }

  static Constant apply_division(const Token& mark, bool is_quotient, const Constant& x, const Constant& y,
                                 Constant::Kind kind) {
    if (!y.bits) reject(mark, "a division by zero");
    if (kind == Constant::Unsigned) return {kind, is_quotient ? x.bits / y.bits : x.bits % y.bits};
    int64_t p = static_cast<int64_t>(x.bits), q = static_cast<int64_t>(y.bits);
    if (q == -1) return {kind, is_quotient ? 0 - x.bits : 0};
    return {kind, static_cast<uint64_t>(is_quotient ? p / q : p % q)};
  }

  Constant parse_unary() {
    if (at_ >= end_) reject(tokens_[end_ ? end_ - 1 : 0], "no constant follows");
    const Token& token = tokens_[at_];
    if (++depth_ > kMaxDepth) reject(token, "too deep an expression");
    Constant result = token.text == "(" ? parse_parenthesis() : is_sign(token) ? parse_signed() : parse_number_token();
    depth_--;
    return result;
  }

  static bool is_sign(const Token& token) {
    return token.text == "-" || token.text == "+" || token.text == "!" || token.text == "~";
  }

  Constant parse_number_token() {
    const Token& token = tokens_[at_++];
    if (!is_literal(token.text) && token.text != "WARP_SZ") reject(token, "no constant");
    return parse_number(token);
  }

  Constant parse_signed() {
    const Token& sign = tokens_[at_++];
    if (at_ < end_ && is_float_bits(tokens_[at_].text)) reject(sign, "a sign before the bits of a number");
    Constant result = parse_unary();
    if (sign.text == "+") return result;
    if (result.real() && sign.text != "-") reject(sign, "an operator that real constants do not have");
    if (result.real()) result.bits ^= 1ull << 63;
    else if (sign.text == "!") result = {Constant::Signed, result.bits == 0};
    else result.bits = sign.text == "-" ? 0 - result.bits : ~result.bits;
    return result;
  }

  // Parses `(.u64) x` or `(x)`.
  Constant parse_parenthesis() {
    const Token& open = tokens_[at_++];
    bool to_signed = is(".s64"), is_cast = to_signed || is(".u64");
    Constant result;
    if (is_cast) at_++;
    else result = parse();
    if (!is(")")) reject(open, "nothing closes it");
    at_++;
    if (!is_cast) return result;
    result = parse_unary();
    if (result.real()) reject(open, "a cast of a real constant");
    result.kind = to_signed ? Constant::Signed : Constant::Unsigned;
    return result;
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
  if (constant.kind == Constant::Double) single = static_cast<float>(value);
  if (type == "f32") return bits = 0, std::memcpy(&bits, &single, sizeof single), true;
  if (type == "f64") return std::memcpy(&bits, &value, sizeof value), true;  // 0fXXXXXXXX is the lower half, as in ptxas
  bits = constant.bits;
  return type == (constant.kind == Constant::Single ? "b32" : "b64");
}

}  // namespace

bool begins_constant(std::string_view text) {
  return is_literal(text) || text == "-" || text == "~" || text == "WARP_SZ" || text == "+";
}

Constant constant(const std::vector<Token>& tokens, size_t& at, size_t end) { return Expression(tokens, at, end).parse(); }

bool bits_as(const Constant& constant, std::string_view type, uint64_t& bits) {
  if (constant.real()) return real_bits(constant, type, bits);
  bits = constant.bits;
  const bool is_packed = type.size() > 2 && type.substr(type.size() - 2) == "x2";
  return type.empty() || (type[0] != 'f' && type.substr(0, 2) != "bf" && !is_packed);
}

}  // namespace vgpu::ptx
