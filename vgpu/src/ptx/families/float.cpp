// Floating point of 32 and 64 bits: PTX ISA, "Floating Point Instructions".
//
// Exact operations follow IEEE 754, in the rounding mode that the instruction names.  An approximation does what the instructions
// do that ptxas emits for it, and so gives the bits of a card.  A NaN result is the hardware's canonical NaN.
#include <cmath>

#include "arithmetic/float_operations.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

using namespace fp;

bool is_subnormal(float a) { return std::fabs(a) < kMinNormal; }

// UnitRcp and the like: the card's multi-function unit (MUFU instructions), which treats subnormals as zeros.  Approximations
// without ftz: values that are subnormal, or close to it, are scaled before and after.
struct ApproximateRcp {
  static float of(float a) {
    const float scale = std::fabs(a) > 0x1p126f ? 0.25f : is_subnormal(a) ? 0x1p24f : 1;
    return canonicalize_nan(scale * UnitRcp::of(scale * a));
  }
};
struct ApproximateRsqrt {
  static float of(float a) { return is_subnormal(a) ? UnitRsqrt::of(a * 0x1p24f) * 0x1p12f : UnitRsqrt::of(a); }
};
struct ApproximateSqrt {
  static float of(float a) { return is_subnormal(a) ? UnitSqrt::of(a * 0x1p24f) * 0x1p-12f : UnitSqrt::of(a); }
};
struct ApproximateEx2 {
  static float of(float a) {
    if (!(a < -126)) return UnitEx2::of(a);
    const float root = UnitEx2::of(a * 0.5f);
    return root * root;
  }
};
struct ApproximateLg2 {
  static float of(float a) { return is_subnormal(a) ? UnitLg2::of(a * 0x1p24f) - 24 : UnitLg2::of(a); }
};
// The angle over 2 pi, rounded toward zero: the product of two floats is exact as a double.
template <class Unit> struct OfAngle {
  static float of(float a) {
    const double turns = double(a) * double(0.15915494f);
    if (!(std::fabs(turns) <= 0x1p127)) return canonicalize_nan(NAN);
    return Unit::of(static_cast<float>(bit_cast<double>(bit_cast<uint64_t>(turns) >> 29 << 29)));
  }
};

// a * (1 / b).  For b beyond 2^126 the reciprocal is subnormal, which a card treats as zero; div.full scales it instead.
template <bool kFull> struct ApproximateDiv {
  static float of(float a, float b) {
    const float scale = kFull && std::fabs(b) > 0x1p126f ? 0.25f : is_subnormal(b) ? 0x1p24f : 1;
    return Mul::of(UnitRcp::of(b * scale), a * scale);
  }
};
template <bool kFull> struct ApproximateDivFlushed {
  static float of(float a, float b) {
    const float scale = kFull && std::fabs(b) > 0x1p126f ? 0.25f : 1;
    return Flushed<Mul>::of(UnitRcp::of(b * scale), flush_subnormal(flush_subnormal(a) * scale));
  }
};
struct Neg {
  template <class T> static T of(T a) { return -a; }
};
// A double NaN becomes quiet and keeps its sign.
struct Abs {
  template <class T> static T of(T a) { return sizeof(T) == 8 && a != a ? a + a : std::fabs(a); }
};
// The sign of a and the magnitude of b.
struct CopySign {
  template <class T> static T of(T a, T b) { return std::copysign(b, a); }
};
// min or max of the magnitudes, with the exclusive or of the operands' signs.
template <class Op> struct XorSign {
  static float of(float a, float b) {
    const float result = Op::of(std::fabs(a), std::fabs(b));
    return result != result ? result : std::copysign(result, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
  }
};

}  // namespace

template <uint32_t (*kOf)(uint32_t)> constexpr bool kIsExpensive<OfBits<kOf>> = true;
template <uint32_t (*kOf)(uint32_t)> constexpr bool kIsExpensive<OfUpperWord<kOf>> = true;
template <class Unit> constexpr bool kIsExpensive<OfAngle<Unit>> = true;
template <> constexpr bool kIsExpensive<ApproximateRcp> = true;
template <> constexpr bool kIsExpensive<ApproximateRsqrt> = true;
template <> constexpr bool kIsExpensive<ApproximateSqrt> = true;
template <> constexpr bool kIsExpensive<ApproximateEx2> = true;
template <> constexpr bool kIsExpensive<ApproximateLg2> = true;
template <bool kFull> constexpr bool kIsExpensive<ApproximateDiv<kFull>> = true;
template <bool kFull> constexpr bool kIsExpensive<ApproximateDivFlushed<kFull>> = true;
template <class Op> constexpr bool kIsExpensive<Flushed<Op>> = kIsExpensive<Op>;
template <class Op> constexpr bool kIsExpensive<Saturated<Op>> = kIsExpensive<Op>;

namespace {

// Runs kRun in another rounding mode than to nearest.
template <Execute kRun> void run_rounded(WarpContext& warp, const Instruction& i) {
  ScopedRoundingMode scoped_mode(static_cast<RoundingMode>(i.variant));
  kRun(warp, i);
}

template <class T, class Op, int kOperands> constexpr Execute for_operands() {
  if constexpr (kOperands == 1) return unary<T, T, Op>;
  else if constexpr (kOperands == 2) return binary<T, T, Op>;
  else return ternary<T, T, Op>;
}
template <class T, class Op, int kOperands> Execute select_rounding(bool sat, RoundingMode mode) {
  if (sat)
    return mode == RoundingMode::Nearest ? for_operands<T, Saturated<Op>, kOperands>()
                                         : run_rounded<for_operands<T, Saturated<Op>, kOperands>()>;
  return mode == RoundingMode::Nearest ? for_operands<T, Op, kOperands>() : run_rounded<for_operands<T, Op, kOperands>()>;
}
template <class Op, int kOperands> Execute select_for_type(const Statement& s, RoundingMode mode) {
  bool sat = s.has("sat");
  if (s.type() == "f64") return sat ? nullptr : select_rounding<double, Op, kOperands>(false, mode);
  if (s.type() != "f32") return nullptr;
  return s.has("ftz") ? select_rounding<float, Flushed<Op>, kOperands>(sat, mode)
                      : select_rounding<float, Op, kOperands>(sat, mode);
}

template <class Op, int kOperands> Execute select_float(const Statement& s) {
  return s.has("ftz") ? select_rounding<float, Flushed<Op>, kOperands>(false, RoundingMode::Nearest)
                      : select_rounding<float, Op, kOperands>(false, RoundingMode::Nearest);
}

// Operations that round in the mode that the statement names.
Execute select_rounded(const Statement& s) {
  const RoundingMode mode = rounding_mode_of(s);
  if (s.op == "add") return select_for_type<Add, 2>(s, mode);
  if (s.op == "sub") return select_for_type<Sub, 2>(s, mode);
  if (s.op == "mul") return select_for_type<Mul, 2>(s, mode);
  if (s.op == "fma" || s.op == "mad") return select_for_type<Fma, 3>(s, mode);
  if (s.op == "div") return select_for_type<Div, 2>(s, mode);
  if (s.op == "sqrt") return select_for_type<Sqrt, 1>(s, mode);
  if (s.op == "rcp") return select_for_type<Rcp, 1>(s, mode);
  return nullptr;
}

template <class Op> Execute select_min_max(const Statement& s) {
  if (s.has("xorsign")) return s.type() == "f32" ? select_float<XorSign<Op>, 2>(s) : nullptr;
  return select_for_type<Op, 2>(s, RoundingMode::Nearest);
}

Execute select_nearest(const Statement& s) {
  const RoundingMode nearest = RoundingMode::Nearest;
  if (s.op == "neg") return select_for_type<Neg, 1>(s, nearest);
  if (s.op == "abs") return select_for_type<Abs, 1>(s, nearest);
  if (s.op == "min") return s.has("NaN") ? select_min_max<MinNan>(s) : select_min_max<Min>(s);
  if (s.op == "max") return s.has("NaN") ? select_min_max<MaxNan>(s) : select_min_max<Max>(s);
  if (s.op == "rsqrt") return select_for_type<Rsqrt, 1>(s, nearest);
  if (s.op == "copysign") return select_for_type<CopySign, 2>(s, nearest);
  return nullptr;
}

template <class Op, class Flushing, int kOperands = 1> Execute select_flushing(const Statement& s) {
  return s.has("ftz") ? for_operands<float, Flushing, kOperands>() : for_operands<float, Op, kOperands>();
}

Execute select_approximation(const Statement& s) {
  if (s.op == "rcp") return select_flushing<ApproximateRcp, UnitRcp>(s);
  if (s.op == "rsqrt") return select_flushing<ApproximateRsqrt, UnitRsqrt>(s);
  if (s.op == "sqrt") return select_flushing<ApproximateSqrt, UnitSqrt>(s);
  if (s.op == "ex2") return select_flushing<ApproximateEx2, UnitEx2>(s);
  if (s.op == "lg2") return select_flushing<ApproximateLg2, UnitLg2>(s);
  if (s.op == "sin") return for_operands<float, OfAngle<UnitSin>, 1>();
  if (s.op == "cos") return for_operands<float, OfAngle<UnitCos>, 1>();
  if (s.op == "tanh") return for_operands<float, UnitTanh, 1>();
  if (s.op == "div" && s.has("full")) return select_flushing<ApproximateDiv<true>, ApproximateDivFlushed<true>, 2>(s);
  return s.op == "div" ? select_flushing<ApproximateDiv<false>, ApproximateDivFlushed<false>, 2>(s) : nullptr;
}

Execute select_operation(const Statement& s) {
  if (s.type() == "f64" && s.has("approx") && s.has("ftz"))  // OfUpperWord: computes on the upper 32 bits alone
    return s.op == "rcp"     ? unary<double, double, OfUpperWord<multi_function::rcp64h>>
           : s.op == "rsqrt" ? unary<double, double, OfUpperWord<multi_function::rsqrt64h>>
                             : nullptr;
  if (s.type() == "f32" && (s.has("approx") || s.has("full"))) return select_approximation(s);
  const Execute rounded = select_rounded(s);
  return rounded ? rounded : select_nearest(s);
}

enum { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class T> bool has_property(int property, T a) {
  switch (property) {
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
  set_predicate(warp, i.d, [&](uint32_t l) { return has_property(i.variant, a[l]); });
}
bool decode_test(Decoder& d, const Statement& s, Instruction& i) {
  static const std::string_view words[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  if (!s.allows_only({"finite|infinite|number|notanumber|normal|subnormal"}) || s.qualifiers.size() != 2) return false;
  for (uint8_t k = 0; k < 6; k++)
    if (s.has(words[k])) i.variant = k;
  i.execute = for_float(s.type(), [](auto tag) -> Execute { return testp<typename decltype(tag)::type>; });
  if (!i.execute || s.operands.size() != 2) return false;
  i.d = d.predicate_result(s.operands[0]);
  i.a = d.source(s.operands[1], s.type());
  d.emit(i);
  return true;
}

// Some instructions require a rounding mode; f64 has neither ftz nor sat, and only two approximations.
bool has_known_qualifiers(const Statement& s) {
  static const std::string_view rounding = "rn|rz|rm|rp", for_division = "rn|rz|rm|rp|approx|full",
                                for_reciprocal = "rn|rz|rm|rp|approx";
  const bool is_double = s.type() == "f64";
  if (is_in_group("ex2|lg2|sin|cos|tanh", s.op)) return !is_double && s.has("approx") && s.allows_only({"approx", "ftz"});
  if (s.op == "rsqrt" || (s.op == "rcp" && is_double && s.has("approx")))
    return s.has("approx") && (s.op == "rsqrt" || s.has("ftz")) && s.allows_only({"approx", "ftz"});
  if (is_double && s.has("ftz")) return false;
  if (s.op == "min" || s.op == "max") return is_double ? s.allows_only({}) : s.allows_only({"ftz", "NaN", "xorsign", "abs"});
  if (s.op == "neg" || s.op == "abs") return s.allows_only({"ftz"});
  if (s.op == "copysign") return s.allows_only({});
  if (s.op == "add" || s.op == "sub" || s.op == "mul") return s.allows_only({rounding, "ftz", "sat"});
  if (s.op == "fma" || s.op == "mad") return !s.qualifier_of(rounding).empty() && s.allows_only({rounding, "ftz", "sat"});
  const std::string_view accepted = is_double ? rounding : s.op == "div" ? for_division : for_reciprocal;
  return !s.qualifier_of(accepted).empty() && s.allows_only({accepted, "ftz"});
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
  uint32_t* fields[] = {&i.d, &i.a, &i.b, &i.c};
  for (size_t k = 0; k < s.operands.size(); k++)
    *fields[k] = k ? d.source(s.operands[k], s.type()) : d.result(s.operands[k], s.type());
  d.emit(i);
  return true;
}

}  // namespace vgpu
