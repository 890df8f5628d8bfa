// NaNs, subnormals, minimum and maximum of floats and doubles.
#pragma once
#include <cmath>
#include <cstdint>

#include "bits.h"

namespace vgpu {

// Replaces a NaN by the canonical one, as hardware does not keep payloads.
inline float canonicalize_nan(float x) { return x != x ? bit_cast<float>(0x7fffffffu) : x; }
inline double canonicalize_nan(double x) { return x != x ? bit_cast<double>(0x7ff8000000000000ull) : x; }

constexpr float kMinNormal = 0x1p-126f;

// Replaces a subnormal by a zero of the same sign.
inline float flush_subnormal(float x) {
  uint32_t bits = bit_cast<uint32_t>(x);
  return bits & 0x7f800000u ? x : bit_cast<float>(bits & 0x80000000u);
}

// If one operand is a NaN, these return the other.  -0 is less than +0: equal operands differ at most in their signs.  Without
// branches, so that compilers vectorize loops around them; a comparison with a NaN is false.
template <class T>
inline T minimum(T a, T b) {
  const T less = a < b ? a : b, negative = bit_cast<T>(bit_cast<BitsOf<T>>(a) | bit_cast<BitsOf<T>>(b));
  const T number = a == b ? negative : less;
  return canonicalize_nan(b != b ? a : number);
}
template <class T>
inline T maximum(T a, T b) {
  const T greater = a > b ? a : b, positive = bit_cast<T>(bit_cast<BitsOf<T>>(a) & bit_cast<BitsOf<T>>(b));
  const T number = a == b ? positive : greater;
  return canonicalize_nan(b != b ? a : number);
}

}  // namespace vgpu
