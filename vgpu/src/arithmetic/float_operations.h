// What floating-point instructions compute, of whatever instruction set: each is of(operands).
#pragma once
#include <cmath>

#include "elementary.h"
#include "float.h"
#include "rounding.h"

namespace vgpu::fp {

struct Add {
  template <class T> static T of(T a, T b) { return canonicalize_nan(a + b); }
};
struct Sub {
  template <class T> static T of(T a, T b) { return canonicalize_nan(a - b); }
};
struct Mul {
  template <class T> static T of(T a, T b) { return canonicalize_nan(a * b); }
};
struct Div {
  template <class T> static T of(T a, T b) { return canonicalize_nan(a / b); }
};
struct Fma {
  template <class T> static T of(T a, T b, T c) { return canonicalize_nan(std::fma(a, b, c)); }
};
struct Sqrt {
  template <class T> static T of(T a) { return canonicalize_nan(std::sqrt(a)); }
};
struct Rcp {
  template <class T> static T of(T a) { return canonicalize_nan(T(1) / a); }
};
struct Rsqrt {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(1.0 / std::sqrt(double(a)))); }
};
struct Ex2 {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(exp2_of(double(a)))); }
};
struct Lg2 {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(log2_of(double(a)))); }
};
struct Sin {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(sin_of(double(a)))); }
};
struct Cos {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(cos_of(double(a)))); }
};
struct Tanh {
  template <class T> static T of(T a) { return canonicalize_nan(static_cast<T>(tanh_of(double(a)))); }
};
struct Min {
  template <class T> static T of(T a, T b) { return minimum(a, b); }
};
struct Max {
  template <class T> static T of(T a, T b) { return maximum(a, b); }
};
struct MinNan {
  template <class T> static T of(T a, T b) { return a != a || b != b ? canonicalize_nan(a + b) : minimum(a, b); }
};
struct MaxNan {
  template <class T> static T of(T a, T b) { return a != a || b != b ? canonicalize_nan(a + b) : maximum(a, b); }
};

// rcp.approx.ftz.f64 and its like read and write the upper 32 bits alone, and flush what is subnormal.
template <class Op> struct ApproximateF64 {
  static double upper(double x) {
    double cut = bit_cast<double>(bit_cast<uint64_t>(x) & ~0xffffffffull);
    return x != x ? canonicalize_nan(x) : std::fpclassify(cut) == FP_SUBNORMAL ? std::copysign(0.0, x) : cut;
  }
  static double of(double a) { return upper(Op::of(upper(a))); }
};

// The same with subnormals flushed, and with results held to [0, 1].  A card looks at what is to be rounded: what becomes
// normal by that alone is flushed, too.
template <class Op> struct Flushed {
  template <class... T> static float of(T... a) {
    float made = Op::of(flush_subnormal(a)...);
    return flush_subnormal(__builtin_expect(std::fabs(made) == kMinNormal, 0) ? flush_operands(flush_subnormal(a)...) : made);
  }
  template <class... T> __attribute__((noinline)) static float flush_operands(T... a) {
    ScopedRoundingMode to(RoundingMode::Zero);
    volatile float made = Op::of(*const_cast<volatile T*>(&a)...);
    return made;
  }
};
template <class Op> struct Saturated {
  template <class T> static T saturate(T x) { return x > T(0) ? (x > T(1) ? T(1) : x) : T(0); }  // a NaN is 0
  template <class T> static T of(T a) { return saturate(Op::of(a)); }
  template <class T> static T of(T a, T b) { return saturate(Op::of(a, b)); }
  template <class T> static T of(T a, T b, T c) { return saturate(Op::of(a, b, c)); }
};

}  // namespace vgpu::fp
