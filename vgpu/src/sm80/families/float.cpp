// Floating point of 32 bits.
#include "arithmetic/float_operations.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

using namespace fp;

// kSigned: whether operands have sign flags (vector_registers[kFlags]).
template <class Op, uint32_t kOperands, bool kSigned> void apply(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1),
      third(i.vector_registers[kFlags], 2);
  const auto operand_of = [](const Signs<uint32_t>& signs, const uint32_t* registers, uint32_t l) {
    return bit_cast<float>(kSigned ? signs.of(registers[l]) : registers[l]);
  };
  write_lane_words(warp, i.d, [=](uint32_t l) {
    if constexpr (kOperands == 1) return bit_cast<uint32_t>(Op::of(operand_of(second, b, l)));
    else if constexpr (kOperands == 2) return bit_cast<uint32_t>(Op::of(operand_of(first, a, l), operand_of(second, b, l)));
    else return bit_cast<uint32_t>(Op::of(operand_of(first, a, l), operand_of(second, b, l), operand_of(third, c, l)));
  });
}

// Executes in the rounding mode `variant`.  Not inlined, so that the loop is not moved out of the mode's scope.
template <Execute kRun> __attribute__((noinline)) void apply_rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode scope(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class Op, uint32_t kOperands> Execute with_signs(const Instruction& i) {
  if (static_cast<RoundingMode>(i.variant) != RoundingMode::Nearest) return apply_rounded<apply<Op, kOperands, true>>;
  return i.vector_registers[kFlags] ? apply<Op, kOperands, true> : apply<Op, kOperands, false>;
}

template <class Op, uint32_t kOperands> bool select_operation(const Decoded& c, Instruction& i) {
  i.variant = static_cast<uint8_t>(rounding_of(c.modifier(78))), i.vector_registers[kFlags] = sign_flags(c);
  if (c.has("SAT"))
    i.execute = c.has("FTZ") ? with_signs<Saturated<Flushed<Op>>, kOperands>(i) : with_signs<Saturated<Op>, kOperands>(i);
  else i.execute = c.has("FTZ") ? with_signs<Flushed<Op>, kOperands>(i) : with_signs<Op, kOperands>(i);
  return true;
}

// imm: the test, and from bit 4 on the operation that combines it with the predicate.
template <bool kFlush> void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t result = compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
    const float x = bit_cast<float>(first.of(a[l])), y = bit_cast<float>(second.of(b[l]));
    return kFlush ? std::pair(flush_subnormal(x), flush_subnormal(y)) : std::pair(x, y);
  });
  write_comparison(warp, i, result);
}

template <bool kFlush> void set_one(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t test_result = compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
    const float x = bit_cast<float>(first.of(a[l])), y = bit_cast<float>(second.of(b[l]));
    return kFlush ? std::pair(flush_subnormal(x), flush_subnormal(y)) : std::pair(x, y);
  });
  const uint32_t result = combine(static_cast<uint32_t>(i.imm >> 4), test_result, read_predicate(warp, i.e));
  write_lane_words(warp, i.d, [=](uint32_t l) { return result >> l & 1 ? 0x3f800000u : 0; });
}

// Computes the minimum if the predicate is true, otherwise the maximum.
template <class Least, class Greatest> void minimum_or_maximum(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), least = read_predicate(warp, i.e);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const auto write_each = [&](auto f) {
    write_lane_words(warp, i.d, [=](uint32_t l) {
      return bit_cast<uint32_t>(f(bit_cast<float>(first.of(a[l])), bit_cast<float>(second.of(b[l])), least >> l & 1));
    });
  };
  if (least == kFullMask) write_each([](float x, float y, bool) { return Least::of(x, y); });
  else if (least == 0) write_each([](float x, float y, bool) { return Greatest::of(x, y); });
  else write_each([](float x, float y, bool is_least) { return blend(is_least, Least::of(x, y), Greatest::of(x, y)); });
}

void sel(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), chosen = read_predicate(warp, i.e);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  write_lane_words(warp, i.d, [=](uint32_t l) { return blend(chosen >> l & 1, first.of(a[l]), second.of(b[l])); });
}

// imm: the exponent of the power of two that scales the product.
void multiply_scaled(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const float scale = std::ldexp(1.0f, static_cast<int>(i.imm));
  write_lane_words(warp, i.d, [=](uint32_t l) {
    return bit_cast<uint32_t>(Mul::of(bit_cast<float>(first.of(a[l])) * scale, bit_cast<float>(second.of(b[l]))));
  });
}

// Operations on the upper words of doubles.
template <uint32_t (*kOf)(uint32_t)> void upper_word(WarpContext& warp, const Instruction& i) {
  const uint32_t* b = lane_words(warp, i.b);
  const Signs<uint32_t> signs(i.vector_registers[kFlags], 1);
  write_lane_words(warp, i.d, [=](uint32_t l) { return kOf(signs.of(b[l])); });
}

// Writes whether a quotient needs the slow path of a division.  Returning true too often is correct, as that path is exact.
void check_division(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  set_predicate(warp, i.vector_registers[kFirstWritten], [=](uint32_t l) {
    const int x = static_cast<int>(a[l] >> 23 & 255), y = static_cast<int>(b[l] >> 23 & 255);
    return x < 30 || x > 224 || y < 30 || y > 224 || x - y > 96 || y - x > 96;
  });
}

template <class Op> Execute elementary() { return apply<Op, 1, true>; }

}  // namespace

RoundingMode rounding_of(std::string_view name) {
  if (name == "RM") return RoundingMode::Down;
  if (name == "RP") return RoundingMode::Up;
  return name == "RZ" ? RoundingMode::Zero : RoundingMode::Nearest;
}

bool select_float_add(FunctionDecoder&, const Decoded& c, Instruction& i) { return select_operation<Add, 2>(c, i); }

bool select_float_multiply(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const std::string_view scale = c.modifier(84);
  if (scale.empty()) return select_operation<Mul, 2>(c, i);
  i.imm = scale == "D8" ? -3 : scale == "D4" ? -2 : scale == "D2" ? -1 : scale == "M2" ? 1 : scale == "M4" ? 2 : 3;
  i.vector_registers[kFlags] = sign_flags(c), i.execute = multiply_scaled;
  return !c.has("FTZ") && !c.has("SAT") && c.modifier(78).empty();
}

bool select_float_multiply_add(FunctionDecoder&, const Decoded& c, Instruction& i) { return select_operation<Fma, 3>(c, i); }

bool select_float_minimum(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c);
  if (c.has("NAN"))
    i.execute = c.has("FTZ") ? minimum_or_maximum<Flushed<MinNan>, Flushed<MaxNan>> : minimum_or_maximum<MinNan, MaxNan>;
  else i.execute = c.has("FTZ") ? minimum_or_maximum<Flushed<Min>, Flushed<Max>> : minimum_or_maximum<Min, Max>;
  return true;
}

bool select_float_sel(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.execute = sel;
  return !c.has("FTZ");
}

bool select_float_compare(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.imm = c.bits(76, 4) | c.bits(74, 2) << 4;
  i.execute = c.has("FTZ") ? compare<true> : compare<false>;
  return true;
}

bool select_float_set(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.imm = c.bits(76, 4) | c.bits(74, 2) << 4;
  i.execute = c.has("FTZ") ? set_one<true> : set_one<false>;
  return true;
}

bool select_elementary(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c);
  const std::string_view name = c.modifier(74);
  if (name == "COS") i.execute = elementary<UnitCos>();
  if (name == "SIN") i.execute = elementary<UnitSin>();
  if (name == "EX2") i.execute = elementary<UnitEx2>();
  if (name == "LG2") i.execute = elementary<UnitLg2>();
  if (name == "RCP") i.execute = elementary<UnitRcp>();
  if (name == "RSQ") i.execute = elementary<UnitRsqrt>();
  if (name == "SQRT") i.execute = elementary<UnitSqrt>();
  if (name == "TANH") i.execute = elementary<UnitTanh>();
  if (name == "RCP64H") i.execute = upper_word<multi_function::rcp64h>;
  if (name == "RSQ64H") i.execute = upper_word<multi_function::rsqrt64h>;
  return i.execute != nullptr;
}

bool select_check_division(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = check_division, true; }

}  // namespace vgpu::sm80
