// Floating point of 32 bits.
#include "arithmetic/float_operations.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

using namespace fp;

// kSigned: do operands have signs of their own (vector_registers[kFlags])?
template <class Op, uint32_t kOperands, bool kSigned> void apply(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), *c = words(warp, i.c);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1),
      third(i.vector_registers[kFlags], 2);
  const auto at = [](const Signs<uint32_t>& signs, const uint32_t* from, uint32_t l) {
    return bit_cast<float>(kSigned ? signs.of(from[l]) : from[l]);
  };
  write_words(warp, i.d, [=](uint32_t l) {
    if constexpr (kOperands == 1) return bit_cast<uint32_t>(Op::of(at(second, b, l)));
    else if constexpr (kOperands == 2) return bit_cast<uint32_t>(Op::of(at(first, a, l), at(second, b, l)));
    else return bit_cast<uint32_t>(Op::of(at(first, a, l), at(second, b, l), at(third, c, l)));
  });
}

// In another rounding than to the nearest, which variant names.  The loop must not be computed outside of it.
template <Execute kRun> __attribute__((noinline)) void rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode to(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class Op, uint32_t kOperands> Execute with_signs(const Instruction& i) {
  if (static_cast<RoundingMode>(i.variant) != RoundingMode::Nearest) return rounded<apply<Op, kOperands, true>>;
  return i.vector_registers[kFlags] ? apply<Op, kOperands, true> : apply<Op, kOperands, false>;
}

template <class Op, uint32_t kOperands> bool select_operation(const Decoded& c, Instruction& i) {
  i.variant = static_cast<uint8_t>(rounding_of(c.modifier(78))), i.vector_registers[kFlags] = sign_flags(c);
  if (c.has("SAT"))
    i.execute = c.has("FTZ") ? with_signs<Saturated<Flushed<Op>>, kOperands>(i) : with_signs<Saturated<Op>, kOperands>(i);
  else i.execute = c.has("FTZ") ? with_signs<Flushed<Op>, kOperands>(i) : with_signs<Op, kOperands>(i);
  return true;
}

// imm: test, and how it is joined.
template <bool kFlush> void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t holds = compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
    const float x = bit_cast<float>(first.of(a[l])), y = bit_cast<float>(second.of(b[l]));
    return kFlush ? std::pair(flush_subnormal(x), flush_subnormal(y)) : std::pair(x, y);
  });
  write_joined(warp, i, holds);
}

template <bool kFlush> void set_one(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t holds = compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
    const float x = bit_cast<float>(first.of(a[l])), y = bit_cast<float>(second.of(b[l]));
    return kFlush ? std::pair(flush_subnormal(x), flush_subnormal(y)) : std::pair(x, y);
  });
  const uint32_t made = join(static_cast<uint32_t>(i.imm >> 4), holds, read_predicate(warp, i.e));
  write_words(warp, i.d, [=](uint32_t l) { return made >> l & 1 ? 0x3f800000u : 0; });
}

// The predicate asks for the lesser one.
template <class Least, class Greatest> void minimum_or_maximum(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), least = read_predicate(warp, i.e);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  write_words(warp, i.d, [=](uint32_t l) {
    const float x = bit_cast<float>(first.of(a[l])), y = bit_cast<float>(second.of(b[l]));
    return bit_cast<uint32_t>(least >> l & 1 ? Least::of(x, y) : Greatest::of(x, y));
  });
}

void sel(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), chosen = read_predicate(warp, i.e);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  write_words(warp, i.d, [=](uint32_t l) { return chosen >> l & 1 ? first.of(a[l]) : second.of(b[l]); });
}

// imm: a power of two by which the product is scaled.
void multiply_scaled(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const float scale = std::ldexp(1.0f, static_cast<int>(i.imm));
  write_words(warp, i.d, [=](uint32_t l) {
    return bit_cast<uint32_t>(Mul::of(bit_cast<float>(first.of(a[l])) * scale, bit_cast<float>(second.of(b[l]))));
  });
}

// The upper words of doubles.
template <uint32_t (*kOf)(uint32_t)> void upper_word(WarpContext& warp, const Instruction& i) {
  const uint32_t* b = words(warp, i.b);
  const Signs<uint32_t> signs(i.vector_registers[kFlags], 1);
  write_words(warp, i.d, [=](uint32_t l) { return kOf(signs.of(b[l])); });
}

// Is a quotient beyond what a reciprocal and two refinements give?  Yes is right too often: the long way is exact as well.
void check_division(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
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
