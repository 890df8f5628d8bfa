// Floating point of 64 bits, in pairs of registers.
#include "arithmetic/float_operations.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

using namespace fp;

double operand_of(const Signs<uint64_t>& signs, const uint32_t* registers, uint32_t lane) {
  return bit_cast<double>(signs.of(pair_of(registers, lane)));
}

template <class Op, uint32_t kOperands> void apply(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1),
      third(i.vector_registers[kFlags], 2);
  write_pairs(warp, i.d, [=](uint32_t l) {
    if constexpr (kOperands == 2) return bit_cast<uint64_t>(Op::of(operand_of(first, a, l), operand_of(second, b, l)));
    else return bit_cast<uint64_t>(Op::of(operand_of(first, a, l), operand_of(second, b, l), operand_of(third, c, l)));
  });
}
// Executes in the rounding mode `variant`.  Not inlined, so that the loop is not moved out of the mode's scope.
template <Execute kRun> __attribute__((noinline)) void apply_rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode scope(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class Op, uint32_t kOperands> bool select_operation(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = static_cast<uint8_t>(rounding_of(c.modifier(78))), i.vector_registers[kFlags] = sign_flags(c);
  i.a = d.read_pair(c.a, WideImmediate::UpperHalf);
  i.b = d.read_pair(c.b, WideImmediate::UpperHalf);
  if (kOperands == 3) i.c = d.read_pair(c.c, WideImmediate::UpperHalf);
  const bool nearest = static_cast<RoundingMode>(i.variant) == RoundingMode::Nearest;
  i.execute = nearest ? apply<Op, kOperands> : apply_rounded<apply<Op, kOperands>>;
  return true;
}

// imm: the test, and from bit 4 on the operation that combines it with the predicate.
void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  write_comparison(warp, i, compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
                     return std::pair(operand_of(first, a, l), operand_of(second, b, l));
                   }));
}

// Writes two predicates: whether to choose the first operand, and whether the chosen one is a NaN.
template <bool kIsMinimum> void choose(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), operation = static_cast<uint32_t>(i.imm >> 4);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t other = read_predicate(warp, i.e);
  const uint32_t chooses_first = lanes_where([=](uint32_t l) {
    const double x = operand_of(first, a, l), y = operand_of(second, b, l);
    if (x != x || y != y) return y != y && x == x;
    return kIsMinimum ? x < y || (x == y && std::signbit(x)) : x > y || (x == y && !std::signbit(x));
  });
  const uint32_t both_nan = lanes_where([=](uint32_t l) {
    const double x = operand_of(first, a, l), y = operand_of(second, b, l);
    return x != x && y != y;
  });
  write_predicate(warp, i.vector_registers[kFirstWritten], combine(operation, chooses_first, other));
  write_predicate(warp, i.vector_registers[kSecondWritten], combine(operation, both_nan, other));
}

}  // namespace

bool select_double_add(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Decoded adjusted = c;
  adjusted.b = c.c, adjusted.c = Source();  // its second operand lies where the third one of others does
  return select_operation<Add, 2>(d, adjusted, i);
}
bool select_double_multiply(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_operation<Mul, 2>(d, c, i); }
bool select_double_multiply_add(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  return select_operation<Fma, 3>(d, c, i);
}

bool select_double_compare(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.imm = c.bits(76, 4) | c.bits(74, 2) << 4;
  i.a = d.read_pair(c.a, WideImmediate::UpperHalf), i.b = d.read_pair(c.b, WideImmediate::UpperHalf);
  i.execute = c.has("MIN") ? choose<true> : c.has("MAX") ? choose<false> : compare;
  return true;
}

}  // namespace vgpu::sm80
