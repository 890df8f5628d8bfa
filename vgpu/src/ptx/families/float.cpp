// Floating point of 32 and 64 bits: PTX ISA, "Floating Point Instructions".
//
// Exact operations are those of IEEE 754, in the rounding that the instruction names.  What PTX calls approximate is
// computed in double and rounded once: within its documented error, and not the last bits of any one card.  A NaN result
// is the canonical one of the hardware.
#include <cmath>

#include "arithmetic/float_operations.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

using namespace fp;

// As a * (1 / b): beyond 2^126 that reciprocal is subnormal, and a card takes it as zero.
struct DivApproximate {
  static float of(float a, float b) {
    return std::fabs(b) > 0x1p126f ? canonicalize_nan(a * std::copysign(0.0f, b)) : Div::of(a, b);
  }
};
struct Neg {
  template <class T> static T of(T a) { return -a; }
};
struct Abs {  // a NaN of double precision becomes quiet, and keeps its sign
  template <class T> static T of(T a) { return sizeof(T) == 8 && a != a ? a + a : std::fabs(a); }
};
struct CopySign {
  template <class T> static T of(T a, T b) { return std::copysign(b, a); }
};  // a's sign, b's value
// min and max of magnitudes, with the operands' signs joined.
template <class Op> struct XorSign {
  static float of(float a, float b) {
    const float made = Op::of(std::fabs(a), std::fabs(b));
    return made != made ? made : std::copysign(made, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
  }
};

}  // namespace

template <> constexpr bool kIsExpensive<Ex2> = true;
template <> constexpr bool kIsExpensive<Lg2> = true;
template <> constexpr bool kIsExpensive<Sin> = true;
template <> constexpr bool kIsExpensive<Cos> = true;
template <> constexpr bool kIsExpensive<Tanh> = true;
template <class Op> constexpr bool kIsExpensive<ApproximateF64<Op>> = true;
template <class Op> constexpr bool kIsExpensive<Flushed<Op>> = kIsExpensive<Op>;
template <class Op> constexpr bool kIsExpensive<Saturated<Op>> = kIsExpensive<Op>;

namespace {

// In another rounding than to nearest.
template <Execute kRun> void rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode to(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class T, class Op, int kOperands> constexpr Execute applied() {
  if constexpr (kOperands == 1) return unary<T, T, Op>;
  else if constexpr (kOperands == 2) return binary<T, T, Op>;
  else return ternary<T, T, Op>;
}
template <class T, class Op, int kOperands> Execute chosen(bool sat, RoundingMode to) {
  if (sat)
    return to == RoundingMode::Nearest ? applied<T, Saturated<Op>, kOperands>()
                                       : rounded<applied<T, Saturated<Op>, kOperands>()>;
  return to == RoundingMode::Nearest ? applied<T, Op, kOperands>() : rounded<applied<T, Op, kOperands>()>;
}
template <class Op, int kOperands> Execute of(const Statement& s, RoundingMode to) {
  bool sat = s.has("sat");
  if (s.type() == "f64") return sat ? nullptr : chosen<double, Op, kOperands>(false, to);
  if (s.type() != "f32") return nullptr;
  return s.has("ftz") ? chosen<float, Flushed<Op>, kOperands>(sat, to) : chosen<float, Op, kOperands>(sat, to);
}

template <class Op, int kOperands> Execute single(const Statement& s) {
  return s.has("ftz") ? chosen<float, Flushed<Op>, kOperands>(false, RoundingMode::Nearest)
                      : chosen<float, Op, kOperands>(false, RoundingMode::Nearest);
}

// What rounds as the statement says.
Execute select_rounded(const Statement& s) {
  const RoundingMode to = rounding_mode_of(s);
  if (s.op == "add") return of<Add, 2>(s, to);
  if (s.op == "sub") return of<Sub, 2>(s, to);
  if (s.op == "mul") return of<Mul, 2>(s, to);
  if (s.op == "fma" || s.op == "mad") return of<Fma, 3>(s, to);
  if (s.op == "div" && s.has("approx")) return single<DivApproximate, 2>(s);
  if (s.op == "div") return of<Div, 2>(s, to);
  if (s.op == "sqrt") return of<Sqrt, 1>(s, to);
  if (s.op == "rcp") return of<Rcp, 1>(s, to);
  return nullptr;
}

template <class Op> Execute limit(const Statement& s) {
  if (s.has("xorsign")) return s.type() == "f32" ? single<XorSign<Op>, 2>(s) : nullptr;
  return of<Op, 2>(s, RoundingMode::Nearest);
}

Execute select_nearest(const Statement& s) {
  const RoundingMode nearest = RoundingMode::Nearest;
  if (s.op == "neg") return of<Neg, 1>(s, nearest);
  if (s.op == "abs") return of<Abs, 1>(s, nearest);
  if (s.op == "min") return s.has("NaN") ? limit<MinNan>(s) : limit<Min>(s);
  if (s.op == "max") return s.has("NaN") ? limit<MaxNan>(s) : limit<Max>(s);
  if (s.op == "rsqrt") return of<Rsqrt, 1>(s, nearest);
  if (s.op == "ex2") return of<Ex2, 1>(s, nearest);
  if (s.op == "lg2") return of<Lg2, 1>(s, nearest);
  if (s.op == "sin") return of<Sin, 1>(s, nearest);
  if (s.op == "cos") return of<Cos, 1>(s, nearest);
  if (s.op == "tanh") return of<Tanh, 1>(s, nearest);
  if (s.op == "copysign") return of<CopySign, 2>(s, nearest);
  return nullptr;
}

Execute select_operation(const Statement& s) {
  if (s.type() == "f64" && s.has("approx") && s.has("ftz"))
    return s.op == "rcp"     ? unary<double, double, ApproximateF64<Rcp>>
           : s.op == "rsqrt" ? unary<double, double, ApproximateF64<Rsqrt>>
                             : nullptr;
  const Execute rounded = select_rounded(s);
  return rounded ? rounded : select_nearest(s);
}

enum { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class T> bool is(int what, T a) {
  switch (what) {
    case kFinite: return std::isfinite(a);
    case kInfinite: return std::isinf(a);
    case kNumber: return a == a;
    case kNotANumber: return a != a;
    case kNormal: return std::fpclassify(a) == FP_NORMAL || std::fpclassify(a) == FP_ZERO;
    default: return std::fpclassify(a) == FP_SUBNORMAL;
  }
}
template <class T> void testp(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  set_predicate(warp, i.d, [&](uint32_t l) { return is(i.variant, a[l]); });
}
bool decode_test(Decoder& d, const Statement& s, Instruction& i) {
  static const std::string_view words[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  if (!s.allows_only({"finite|infinite|number|notanumber|normal|subnormal"}) || s.qualifiers.size() != 2) return false;
  for (uint8_t k = 0; k < 6; k++)
    if (s.has(words[k])) i.variant = k;
  i.execute = for_float(s.type(), [](auto tag) -> Execute { return testp<typename decltype(tag)::type>; });
  if (!i.execute || s.operands.size() != 2) return false;
  i.d = d.predicate_result(s.operands[0]);
  i.a = d.exact_operand(s.operands[1], s.type());
  d.emit(i);
  return true;
}

// Some must say how they round; double precision has neither ftz nor sat, and of approximations two alone.
bool has_known_qualifiers(const Statement& s) {
  static const std::string_view rounding = "rn|rz|rm|rp", divides = "rn|rz|rm|rp|approx|full", inverts = "rn|rz|rm|rp|approx";
  const bool twice = s.type() == "f64";
  if (is_in_group("ex2|lg2|sin|cos|tanh", s.op)) return !twice && s.has("approx") && s.allows_only({"approx", "ftz"});
  if (s.op == "rsqrt" || (s.op == "rcp" && twice && s.has("approx")))
    return s.has("approx") && (s.op == "rsqrt" || s.has("ftz")) && s.allows_only({"approx", "ftz"});
  if (twice && s.has("ftz")) return false;
  if (s.op == "min" || s.op == "max") return twice ? s.allows_only({}) : s.allows_only({"ftz", "NaN", "xorsign", "abs"});
  if (s.op == "neg" || s.op == "abs") return s.allows_only({"ftz"});
  if (s.op == "copysign") return s.allows_only({});
  if (s.op == "add" || s.op == "sub" || s.op == "mul") return s.allows_only({rounding, "ftz", "sat"});
  if (s.op == "fma" || s.op == "mad") return !s.qualifier_of(rounding).empty() && s.allows_only({rounding, "ftz", "sat"});
  const std::string_view how = twice ? rounding : s.op == "div" ? divides : inverts;
  return !s.qualifier_of(how).empty() && s.allows_only({how, "ftz"});
}

size_t operands_of(const Statement& s) {
  if (s.op == "fma" || s.op == "mad") return 4;
  return is_in_group("add|sub|mul|div|min|max|copysign", s.op) ? 3 : 2;
}

}  // namespace

bool decode_float(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "testp") return decode_test(d, s, i);
  if (!has_known_qualifiers(s)) return false;
  i.execute = select_operation(s);
  if (!i.execute || s.operands.size() != operands_of(s)) return false;
  i.variant = static_cast<uint8_t>(rounding_mode_of(s));
  uint32_t* places[] = {&i.d, &i.a, &i.b, &i.c};
  for (size_t k = 0; k < s.operands.size(); k++)
    *places[k] = k ? d.exact_operand(s.operands[k], s.type()) : d.result(s.operands[k], s.type());
  d.emit(i);
  return true;
}

}  // namespace vgpu
