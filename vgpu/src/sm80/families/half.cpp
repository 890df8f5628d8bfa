// Packed half precision (f16x2, and bf16x2 for HFMA2).  Sums and products are exact in double, and are rounded once; fma rounds its
// sum to odd before.
#include "arithmetic/half.h"

#include "arithmetic/float.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

// Bits of vector_registers[kFlags], four for each operand: its sign flags and its HalfPart.
constexpr uint32_t kNegate = 1, kAbsolute = 2, kPartShift = 2, kBitsOfOperand = 4;

struct HalfOperand {
  const uint32_t* registers;
  uint32_t flags;
  HalfOperand(WarpContext& warp, uint32_t offset, uint32_t all_flags_value, uint32_t operand)
      : registers(lane_words(warp, offset)), flags(all_flags_value >> (kBitsOfOperand * operand) & 15) {}

  template <class H> double value(uint32_t lane, uint32_t half) const {
    const uint32_t part = flags >> kPartShift;
    double x;
    if (part == kAsFloat) x = bit_cast<float>(registers[lane]);
    else
      x = H::from_bits(static_cast<uint16_t>(registers[lane] >> (part == kBothHalves ? 16 * half
                                                                 : part == kHighHalf ? 16
                                                                                     : 0)));
    if (flags & kAbsolute) x = std::fabs(x);
    return flags & kNegate ? -x : x;
  }
};

uint32_t flags_of(const Source& source) {
  const uint32_t part = source.kind == SourceKind::Immediate ? uint32_t(kBothHalves) : source.part;
  return (source.negated ? kNegate : 0) | (source.absolute ? kAbsolute : 0) | part << kPartShift;
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
  uint32_t results[kWarpSize];
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const auto half = [&](uint32_t k) -> uint32_t {
      return H::to_bits(Op::of(a.value<H>(l, k), b.value<H>(l, k), c.value<H>(l, k)));
    };
    results[l] = half(0) | half(1) << 16;
  });
  for_each_lane(warp.active_mask, [&, d = lane_words(warp, i.d)](uint32_t l) { d[l] = results[l]; });
}

// Adds the lower halves, as floats.
void add_to_float(WarpContext& warp, const Instruction& i) {
  const HalfOperand a(warp, i.a, i.vector_registers[kFlags], 0), b(warp, i.b, i.vector_registers[kFlags], 1);
  for_each_lane(warp.active_mask, [&, d = lane_words(warp, i.d)](uint32_t l) {
    d[l] = bit_cast<uint32_t>(canonicalize_nan(static_cast<float>(a.value<HalfFormat>(l, 0) + b.value<HalfFormat>(l, 0))));
  });
}

// imm: the test, and from bit 4 on the operation that combines it with the predicate.
uint32_t compare_halves(WarpContext& warp, const Instruction& i, uint32_t half) {
  const HalfOperand a(warp, i.a, i.vector_registers[kFlags], 0), b(warp, i.b, i.vector_registers[kFlags], 1);
  const uint32_t result = compare_floats(static_cast<uint32_t>(i.imm) & 15, [&](uint32_t l) {
    return std::pair(a.value<HalfFormat>(l, half), b.value<HalfFormat>(l, half));
  });
  return combine(static_cast<uint32_t>(i.imm >> 4), result, read_predicate(warp, i.e));
}

void compare(WarpContext& warp, const Instruction& i) {
  const uint32_t low = compare_halves(warp, i, 0), high = compare_halves(warp, i, 1);
  write_predicate(warp, i.vector_registers[kFirstWritten], low);
  write_predicate(warp, i.vector_registers[kSecondWritten], high);
}

// variant: whether true is 1.0 or all bits set.
void set_halves(WarpContext& warp, const Instruction& i) {
  const uint32_t low = compare_halves(warp, i, 0), high = compare_halves(warp, i, 1), yes = i.variant ? 0x3c00 : 0xffff;
  write_lane_words(warp, i.d, [=](uint32_t l) { return (low >> l & 1 ? yes : 0) | (high >> l & 1 ? yes << 16 : 0); });
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

// Compilers load constants by HFMA2.MMA of zeros and an immediate, whose bits must be kept, also those of NaNs.
bool loads_constant(const Decoded& c) {
  const auto is_zero = [](const Source& source) { return source.kind == SourceKind::Register && source.number == kRZ; };
  return is_zero(c.a) && is_zero(c.b) && c.a.negated && c.c.kind == SourceKind::Immediate;
}

void load_constant(WarpContext& warp, const Instruction& i) {
  const uint32_t* source = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return source[l]; });
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
