// f16, f16x2, bf16 and bf16x2.  The sum or product of two values is exact in double and rounded once.  The exact sum of fma may
// not fit in double, so it is rounded to odd first, which keeps the information that decides ties.
#include "arithmetic/half.h"

#include <algorithm>

#include "arithmetic/float.h"
#include "arithmetic/multi_function.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum { kAdd, kSub, kMul, kFma, kNeg, kAbs, kMin, kMax, kMinNan, kMaxNan, kEx2, kTanh };
constexpr uint8_t kFlush = 1, kSaturate = 2, kRelu = 4, kXorSign = 8;

// Applies a function of the card's multi-function unit to x as a float.
float unit_of(uint32_t (*function)(uint32_t), double x) {
  return bit_cast<float>(function(bit_cast<uint32_t>(static_cast<float>(x))));
}

// As on a card: the result of single precision, truncated; infinite from kOverflow on, the power of two above all numbers of H.
template <class H> double power_of_two(double x) {
  const float result = unit_of(multi_function::ex2, x);
  return result < H::kOverflow ? result : double(result) + INFINITY;
}

template <class H, int kOp> uint16_t compute(uint16_t a, uint16_t b, uint16_t c, uint8_t flags) {
  if (flags & kFlush) a = H::flush_subnormal(a), b = H::flush_subnormal(b), c = H::flush_subnormal(c);
  if (kOp == kNeg) return a ^ 0x8000;
  if (kOp == kAbs) return a & 0x7fff;
  const uint16_t sign = flags & kXorSign ? (a ^ b) & 0x8000 : 0;  // the operation is on the magnitudes
  if (flags & kXorSign) a &= 0x7fff, b &= 0x7fff;
  double x = H::from_bits(a), y = H::from_bits(b), result;
  switch (kOp) {
    case kAdd: result = x + y; break;
    case kSub: result = x - y; break;
    case kMul: result = x * y; break;
    case kFma: result = odd_sum(x * y, H::from_bits(c)); break;
    case kMin: result = minimum(x, y); break;
    case kMax: result = maximum(x, y); break;
    case kMinNan: result = x != x || y != y ? NAN : minimum(x, y); break;
    case kMaxNan: result = x != x || y != y ? NAN : maximum(x, y); break;
    case kEx2: result = power_of_two<H>(x); break;
    default: result = unit_of(multi_function::tanh, x); break;
  }
  if ((flags & kSaturate) && !(result > 0 && result < 1)) result = result >= 1 ? 1 : 0;
  // A value that only rounding makes normal is flushed, too.
  if ((flags & kFlush) && std::fabs(result) < H::kMinNormal) result = std::copysign(0.0, result);
  uint16_t bits = H::to_bits(result, kOp == kEx2 || kOp == kTanh ? RoundingMode::Zero : RoundingMode::Nearest);
  if (result == result) bits |= sign;
  return flags & kRelu ? relu(bits) : bits;
}

template <class H, int kOp> void run_single(WarpContext& warp, const Instruction& i) {
  uint16_t *d = lane_values<uint16_t>(warp, i.d), *a = lane_values<uint16_t>(warp, i.a), *b = lane_values<uint16_t>(warp, i.b),
           *c = lane_values<uint16_t>(warp, i.c);
  for_each_lane(warp.active_mask, [&](uint32_t l) { d[l] = compute<H, kOp>(a[l], b[l], c[l], i.variant); });
}
template <class H, int kOp> void run_pair(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    uint32_t low = compute<H, kOp>(uint16_t(a[l]), uint16_t(b[l]), uint16_t(c[l]), i.variant);
    uint32_t up = compute<H, kOp>(uint16_t(a[l] >> 16), uint16_t(b[l] >> 16), uint16_t(c[l] >> 16), i.variant);
    d[l] = low | up << 16;
  });
}
template <class H, int kOp> Execute select_width(bool pair) { return pair ? run_pair<H, kOp> : run_single<H, kOp>; }
template <class H> Execute select_operation(const Statement& s, bool pair) {
  if (s.op == "add") return select_width<H, kAdd>(pair);
  if (s.op == "sub") return select_width<H, kSub>(pair);
  if (s.op == "mul") return select_width<H, kMul>(pair);
  if (s.op == "fma") return select_width<H, kFma>(pair);
  if (s.op == "neg") return select_width<H, kNeg>(pair);
  if (s.op == "abs") return select_width<H, kAbs>(pair);
  if (s.op == "min") return s.has("NaN") ? select_width<H, kMinNan>(pair) : select_width<H, kMin>(pair);
  if (s.op == "max") return s.has("NaN") ? select_width<H, kMaxNan>(pair) : select_width<H, kMax>(pair);
  if (s.op == "ex2") return select_width<H, kEx2>(pair);
  if (s.op == "tanh") return select_width<H, kTanh>(pair);
  return nullptr;
}

bool has_known_qualifiers(const Statement& s) {
  if (s.op == "ex2" || s.op == "tanh") {  // f16 has no ftz; bf16 requires it for ex2
    const bool flushes = s.op == "ex2" && s.type().substr(0, 2) == "bf";
    return s.has("approx") && s.has("ftz") == flushes && s.allows_only({"approx", "ftz"});
  }
  if (s.op == "min" || s.op == "max") return s.allows_only({"ftz", "NaN", "xorsign", "abs"});
  return s.op == "neg" || s.op == "abs" ? s.allows_only({"ftz"}) : s.allows_only({"rn", "ftz", "sat|relu"});
}

}  // namespace

bool decode_half(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view t = s.type();
  if (!has_known_qualifiers(s)) return false;
  bool pair = t == "f16x2" || t == "bf16x2";
  if (t == "f16" || t == "f16x2") i.execute = select_operation<HalfFormat>(s, pair);
  else if (t == "bf16" || t == "bf16x2") i.execute = select_operation<BfloatFormat>(s, pair);
  const size_t expected_operands = s.op == "fma" ? 4 : is_in_group("neg|abs|ex2|tanh", s.op) ? 2 : 3;
  if (!i.execute || s.operands.size() != expected_operands || (expected_operands == 4 && !s.has("rn"))) return false;
  i.variant = (s.has("ftz") ? kFlush : 0) | (s.has("sat") ? kSaturate : 0) | (s.has("relu") ? kRelu : 0) |
              (s.has("xorsign") ? kXorSign : 0);
  uint32_t* fields[] = {&i.d, &i.a, &i.b, &i.c};
  for (size_t k = 0; k < s.operands.size(); k++) *fields[k] = k ? d.source(s.operands[k], t) : d.result(s.operands[k], t);
  if (s.operands.size() < 3) i.b = i.a;
  if (s.operands.size() < 4) i.c = i.a;
  d.emit(i);
  return true;
}

}  // namespace vgpu
