// f16, f16x2, bf16 and bf16x2.  Sums and products of two are exact in double before they are rounded once; fma's exact
// sum need not fit there, so what is lost decides ties (rounding to odd).
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

float unit_of(uint32_t (*function)(uint32_t), double x) {
  return bit_cast<float>(function(bit_cast<uint32_t>(static_cast<float>(x))));
}

// As a card's: that of single precision, cut.
template <class H> double power_of_two(double x) {
  const float made = unit_of(multi_function::ex2, x);
  return made < H::kBeyond ? made : double(made) + INFINITY;
}

template <class H, int kOp> uint16_t of(uint16_t a, uint16_t b, uint16_t c, uint8_t mode) {
  if (mode & kFlush) a = H::flush_subnormal(a), b = H::flush_subnormal(b), c = H::flush_subnormal(c);
  if (kOp == kNeg) return a ^ 0x8000;
  if (kOp == kAbs) return a & 0x7fff;
  const uint16_t sign = mode & kXorSign ? (a ^ b) & 0x8000 : 0;  // of magnitudes, the operands' signs joined
  if (mode & kXorSign) a &= 0x7fff, b &= 0x7fff;
  double x = H::from_bits(a), y = H::from_bits(b), made;
  switch (kOp) {
    case kAdd: made = x + y; break;
    case kSub: made = x - y; break;
    case kMul: made = x * y; break;
    case kFma: made = odd_sum(x * y, H::from_bits(c)); break;
    case kMin: made = minimum(x, y); break;
    case kMax: made = maximum(x, y); break;
    case kMinNan: made = x != x || y != y ? NAN : minimum(x, y); break;
    case kMaxNan: made = x != x || y != y ? NAN : maximum(x, y); break;
    case kEx2: made = power_of_two<H>(x); break;
    default: made = unit_of(multi_function::tanh, x); break;
  }
  if ((mode & kSaturate) && !(made > 0 && made < 1)) made = made >= 1 ? 1 : 0;
  // What only its rounding makes normal is flushed, too.
  if ((mode & kFlush) && std::fabs(made) < H::kMinNormal) made = std::copysign(0.0, made);
  uint16_t bits = H::to_bits(made, kOp == kEx2 || kOp == kTanh ? RoundingMode::Zero : RoundingMode::Nearest);
  if (made == made) bits |= sign;
  return mode & kRelu ? relu(bits) : bits;
}

template <class H, int kOp> void single(WarpContext& warp, const Instruction& i) {
  uint16_t *d = lane_values<uint16_t>(warp, i.d), *a = lane_values<uint16_t>(warp, i.a), *b = lane_values<uint16_t>(warp, i.b),
           *c = lane_values<uint16_t>(warp, i.c);
  for_each_lane(warp.active_mask, [&](uint32_t l) { d[l] = of<H, kOp>(a[l], b[l], c[l], i.variant); });
}
template <class H, int kOp> void both(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    uint32_t low = of<H, kOp>(uint16_t(a[l]), uint16_t(b[l]), uint16_t(c[l]), i.variant);
    uint32_t up = of<H, kOp>(uint16_t(a[l] >> 16), uint16_t(b[l] >> 16), uint16_t(c[l] >> 16), i.variant);
    d[l] = low | up << 16;
  });
}
template <class H, int kOp> Execute sized(bool pair) { return pair ? both<H, kOp> : single<H, kOp>; }
template <class H> Execute pick(const Statement& s, bool pair) {
  if (s.op == "add") return sized<H, kAdd>(pair);
  if (s.op == "sub") return sized<H, kSub>(pair);
  if (s.op == "mul") return sized<H, kMul>(pair);
  if (s.op == "fma") return sized<H, kFma>(pair);
  if (s.op == "neg") return sized<H, kNeg>(pair);
  if (s.op == "abs") return sized<H, kAbs>(pair);
  if (s.op == "min") return s.has("NaN") ? sized<H, kMinNan>(pair) : sized<H, kMin>(pair);
  if (s.op == "max") return s.has("NaN") ? sized<H, kMaxNan>(pair) : sized<H, kMax>(pair);
  if (s.op == "ex2") return sized<H, kEx2>(pair);
  if (s.op == "tanh") return sized<H, kTanh>(pair);
  return nullptr;
}

bool has_known_qualifiers(const Statement& s) {
  if (s.op == "ex2" || s.op == "tanh") {  // of halves without ftz, of bf16 with it, but tanh
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
  if (t == "f16" || t == "f16x2") i.execute = pick<HalfFormat>(s, pair);
  else if (t == "bf16" || t == "bf16x2") i.execute = pick<BfloatFormat>(s, pair);
  const size_t wanted = s.op == "fma" ? 4 : is_in_group("neg|abs|ex2|tanh", s.op) ? 2 : 3;
  if (!i.execute || s.operands.size() != wanted || (wanted == 4 && !s.has("rn"))) return false;
  i.variant = (s.has("ftz") ? kFlush : 0) | (s.has("sat") ? kSaturate : 0) | (s.has("relu") ? kRelu : 0) |
              (s.has("xorsign") ? kXorSign : 0);
  uint32_t* places[] = {&i.d, &i.a, &i.b, &i.c};
  for (size_t k = 0; k < s.operands.size(); k++)
    *places[k] = k ? d.exact_operand(s.operands[k], t) : d.result(s.operands[k], t);
  if (s.operands.size() < 3) i.b = i.a;
  if (s.operands.size() < 4) i.c = i.a;
  d.emit(i);
  return true;
}

}  // namespace vgpu
