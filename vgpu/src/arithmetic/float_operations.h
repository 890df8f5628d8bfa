// The operations of floating-point instructions, for all instruction sets.  of(operands) returns the result.
#pragma once
#include <cmath>

#include "float.h"
#include "multi_function.h"
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

// An operation of the multi-function unit, which kOf computes on a float's bits.
template <uint32_t (*kOf)(uint32_t)> struct OfBits {
  static float of(float a) { return bit_cast<float>(kOf(bit_cast<uint32_t>(a))); }
};
using UnitRcp = OfBits<multi_function::rcp>;
using UnitRsqrt = OfBits<multi_function::rsqrt>;
using UnitSqrt = OfBits<multi_function::sqrt>;
using UnitEx2 = OfBits<multi_function::ex2>;
using UnitLg2 = OfBits<multi_function::lg2>;
using UnitTanh = OfBits<multi_function::tanh>;
struct UnitSin {  // the argument is in turns: the angle divided by 2 pi
  static float of(float a) { return bit_cast<float>(multi_function::sine_of_turns(bit_cast<uint32_t>(a), 0)); }
};
struct UnitCos {
  static float of(float a) { return bit_cast<float>(multi_function::sine_of_turns(bit_cast<uint32_t>(a), 1)); }
};

// Operations such as rcp.approx.ftz.f64, which read and write only the upper 32 bits of a double.
template <uint32_t (*kOf)(uint32_t)> struct OfUpperWord {
  static double of(double a) {
    return bit_cast<double>(uint64_t(kOf(static_cast<uint32_t>(bit_cast<uint64_t>(a) >> 32))) << 32);
  }
};

// Flushed: the operation with subnormals flushed to zero.  Hardware tests the result before rounding, so a subnormal result that
// rounding makes normal is flushed, too.  Saturated: the operation with results clamped to [0, 1].
template <class Op> struct Flushed {
  template <class... T> static float of(T... a) {
    float result = Op::of(flush_subnormal(a)...);
    return flush_subnormal(__builtin_expect(std::fabs(result) == kMinNormal, 0) ? flush_operands(flush_subnormal(a)...)
                                                                                : result);
  }
  template <class... T> __attribute__((noinline)) static float flush_operands(T... a) {
    ScopedRoundingMode rounding(RoundingMode::Zero);
    volatile float result = Op::of(*const_cast<volatile T*>(&a)...);
    return result;
  }
};
template <class Op> struct Saturated {
  template <class T> static T saturate(T x) { return x > T(0) ? (x > T(1) ? T(1) : x) : T(0); }  // a NaN is 0
  template <class T> static T of(T a) { return saturate(Op::of(a)); }
  template <class T> static T of(T a, T b) { return saturate(Op::of(a, b)); }
  template <class T> static T of(T a, T b, T c) { return saturate(Op::of(a, b, c)); }
};

}  // namespace vgpu::fp
