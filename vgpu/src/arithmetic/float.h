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

// If one operand is a NaN, these return the other.  -0 is less than +0.
template <class T>
inline T minimum(T a, T b) {
  if (a != a) return b != b ? canonicalize_nan(a) : b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
inline T maximum(T a, T b) {
  if (a != a) return b != b ? canonicalize_nan(a) : b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

}  // namespace vgpu
