// Two halves in a register: f16x2, and bf16x2 where HFMA2 says so.  Sums and products of two are exact in double before they
// are rounded once; fma's sum is rounded to odd on the way.
#include "arithmetic/half.h"

#include "arithmetic/float.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

// How an operand's halves are taken: bits of vector_registers[kFlags], four for each operand, from its sign flags and its HalfPart.
constexpr uint32_t kNegate = 1, kAbsolute = 2, kPartShift = 2, kBitsOfOperand = 4;

struct HalfOperand {
  const uint32_t* from;
  uint32_t flags;
  HalfOperand(WarpContext& warp, uint32_t at, uint32_t all, uint32_t operand)
      : from(words(warp, at)), flags(all >> (kBitsOfOperand * operand) & 15) {}

  template <class H> double value(uint32_t lane, uint32_t half) const {
    const uint32_t part = flags >> kPartShift;
    double x;
    if (part == kAsFloat) x = bit_cast<float>(from[lane]);
    else x = H::from_bits(static_cast<uint16_t>(from[lane] >> (part == kBothHalves ? 16 * half : part == kHighHalf ? 16 : 0)));
    if (flags & kAbsolute) x = std::fabs(x);
    return flags & kNegate ? -x : x;
  }
};

uint32_t flags_of(const Source& one) {
  const uint32_t part = one.kind == SourceKind::Immediate ? uint32_t(kBothHalves) : one.part;
  return (one.negated ? kNegate : 0) | (one.absolute ? kAbsolute : 0) | part << kPartShift;
}
uint32_t all_flags(const Decoded& c) {
  return flags_of(c.a) | flags_of(c.b) << kBitsOfOperand | flags_of(c.c) << (2 * kBitsOfOperand);
}

struct Sum {
  static double of(double a, double b, double) { return a + b; }
};
struct Product {
  static double of(double a, double b, double) { return a * b; }
};
struct SumOfProduct {
  static double of(double a, double b, double c) { return odd_sum(a * b, c); }
};

template <class H, class Op> void apply(WarpContext& warp, const Instruction& i) {
  const HalfOperand a(warp, i.a, i.vector_registers[kFlags], 0), b(warp, i.b, i.vector_registers[kFlags], 1),
      c(warp, i.c, i.vector_registers[kFlags], 2);
  uint32_t made[kWarpSize];
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const auto half = [&](uint32_t k) -> uint32_t {
      return H::to_bits(Op::of(a.value<H>(l, k), b.value<H>(l, k), c.value<H>(l, k)));
    };
    made[l] = half(0) | half(1) << 16;
  });
  for_each_lane(warp.active_mask, [&, d = words(warp, i.d)](uint32_t l) { d[l] = made[l]; });
}

// The lower halves' sum, as a float.
void add_to_float(WarpContext& warp, const Instruction& i) {
  const HalfOperand a(warp, i.a, i.vector_registers[kFlags], 0), b(warp, i.b, i.vector_registers[kFlags], 1);
  for_each_lane(warp.active_mask, [&, d = words(warp, i.d)](uint32_t l) {
    d[l] = bit_cast<uint32_t>(canonicalize_nan(static_cast<float>(a.value<HalfFormat>(l, 0) + b.value<HalfFormat>(l, 0))));
  });
}

// imm: the test, and from bit 4 on how it is joined.
uint32_t compare_halves(WarpContext& warp, const Instruction& i, uint32_t half) {
  const HalfOperand a(warp, i.a, i.vector_registers[kFlags], 0), b(warp, i.b, i.vector_registers[kFlags], 1);
  const uint32_t holds = compare_floats(static_cast<uint32_t>(i.imm) & 15, [&](uint32_t l) {
    return std::pair(a.value<HalfFormat>(l, half), b.value<HalfFormat>(l, half));
  });
  return join(static_cast<uint32_t>(i.imm >> 4), holds, read_predicate(warp, i.e));
}

void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t low = compare_halves(warp, i, 0), high = compare_halves(warp, i, 1);
  write_predicate(warp, i.vector_registers[kFirstWritten], low);
  write_predicate(warp, i.vector_registers[kSecondWritten], high);
}

// variant: is what holds 1.0, or all bits set?
void set_halves(WarpContext& warp, const Instruction& i) {
  const uint32_t low = compare_halves(warp, i, 0), high = compare_halves(warp, i, 1), yes = i.variant ? 0x3c00 : 0xffff;
  write_words(warp, i.d, [=](uint32_t l) { return (low >> l & 1 ? yes : 0) | (high >> l & 1 ? yes << 16 : 0); });
}

template <class Op> bool select_operation(const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = all_flags(c);
  i.execute = c.has("BF16_V2") ? apply<BfloatFormat, Op> : apply<HalfFormat, Op>;
  return true;
}

bool select_test(const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = all_flags(c), i.imm = c.bits(76, 4) | c.bits(69, 2) << 4;
  return true;
}

// HFMA2.MMA of nothing but zeros and an immediate is how compilers load constants: all bits of it, NaNs as well.
bool loads_constant(const Decoded& c) {
  const auto is_zero = [](const Source& one) { return one.kind == SourceKind::Register && one.number == kRZ; };
  return is_zero(c.a) && is_zero(c.b) && c.a.negated && c.c.kind == SourceKind::Immediate;
}

void load_constant(WarpContext& warp, const Instruction& i) {
  const uint32_t* from = words(warp, i.c);
  write_words(warp, i.d, [=](uint32_t l) { return from[l]; });
}

}  // namespace

bool select_half_add(FunctionDecoder&, const Decoded& c, Instruction& i) {
  if (!c.has("F32")) return select_operation<Sum>(c, i);
  i.vector_registers[kFlags] = all_flags(c), i.execute = add_to_float;
  return true;
}
bool select_half_multiply(FunctionDecoder&, const Decoded& c, Instruction& i) { return select_operation<Product>(c, i); }
bool select_half_multiply_add(FunctionDecoder&, const Decoded& c, Instruction& i) {
  if (loads_constant(c)) return i.execute = load_constant, true;
  return select_operation<SumOfProduct>(c, i);
}
bool select_half_compare(FunctionDecoder&, const Decoded& c, Instruction& i) { return i.execute = compare, select_test(c, i); }
bool select_half_set(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.execute = set_halves, i.variant = c.has("BF");
  return select_test(c, i);
}

}  // namespace vgpu::sm80
