// Floating point of 64 bits, in pairs of registers.
#include "arithmetic/float_operations.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

using namespace fp;

double at(const Signs<uint64_t>& signs, const uint32_t* from, uint32_t lane) {
  return bit_cast<double>(signs.of(pair_of(from, lane)));
}

template <class Op, uint32_t kOperands> void apply(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), *c = words(warp, i.c);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1),
      third(i.vector_registers[kFlags], 2);
  write_pairs(warp, i.d, [=](uint32_t l) {
    if constexpr (kOperands == 2) return bit_cast<uint64_t>(Op::of(at(first, a, l), at(second, b, l)));
    else return bit_cast<uint64_t>(Op::of(at(first, a, l), at(second, b, l), at(third, c, l)));
  });
}
template <Execute kRun> __attribute__((noinline)) void rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode to(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class Op, uint32_t kOperands> bool select_operation(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = static_cast<uint8_t>(rounding_of(c.modifier(78))), i.vector_registers[kFlags] = sign_flags(c);
  i.a = d.read_pair(c.a, WideImmediate::UpperHalf);
  i.b = d.read_pair(c.b, WideImmediate::UpperHalf);
  if (kOperands == 3) i.c = d.read_pair(c.c, WideImmediate::UpperHalf);
  const bool nearest = static_cast<RoundingMode>(i.variant) == RoundingMode::Nearest;
  i.execute = nearest ? apply<Op, kOperands> : rounded<apply<Op, kOperands>>;
  return true;
}

void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  write_joined(warp, i, compare_floats(static_cast<uint32_t>(i.imm) & 15, [=](uint32_t l) {
                 return std::pair(at(first, a, l), at(second, b, l));
               }));
}

// The first predicate: take the first one?  The second: is what is taken not a number?
template <bool kLeast> void choose(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), how = static_cast<uint32_t>(i.imm >> 4);
  const Signs<uint64_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const uint32_t with = read_predicate(warp, i.e);
  const uint32_t taken = lanes_where([=](uint32_t l) {
    const double x = at(first, a, l), y = at(second, b, l);
    if (x != x || y != y) return y != y && x == x;
    return kLeast ? x < y || (x == y && std::signbit(x)) : x > y || (x == y && !std::signbit(x));
  });
  const uint32_t none = lanes_where([=](uint32_t l) {
    const double x = at(first, a, l), y = at(second, b, l);
    return x != x && y != y;
  });
  write_predicate(warp, i.vector_registers[kFirstWritten], join(how, taken, with));
  write_predicate(warp, i.vector_registers[kSecondWritten], join(how, none, with));
}

}  // namespace

bool select_double_add(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Decoded same = c;
  same.b = c.c, same.c = Source();  // its second operand lies where the third one of others does
  return select_operation<Add, 2>(d, same, i);
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
