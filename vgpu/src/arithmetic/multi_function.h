// The approximate functions of a GPU's multi-function unit: rcp, rsqrt, sqrt, ex2, lg2, sin, cos, tanh.
//
// Such a unit evaluates one quadratic polynomial for each part of the function's interval, with a truncated square and few bits:
// S. F. Oberman, M. Y. Siu, "A High-Performance Area-Efficient Multifunction Interpolator", ARITH 2005.  The numbers here
// were fitted to results of an NVIDIA H100.  All results for 32-bit arguments equal that GPU's:
// benchmarks/approximations.py.  Subnormal arguments and results are zeros.
#pragma once
#include "bits.h"
#include "multi_function_tables.h"

namespace vgpu::multi_function {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kNan = 0x7fffffff, kOne = 0x3f800000;
constexpr int kBias = 127, kMantissaBits = 23, kPartBits = 17;  // of an argument within its part
constexpr uint32_t kMantissa = (1u << kMantissaBits) - 1, kHidden = 1u << kMantissaBits;
constexpr int kUnit = 41;  // values are multiples of 2^-41; those of rcp and rsqrt, which are below 1, of 2^-42

struct Float {
  uint32_t sign, exponent, mantissa;
  explicit Float(uint32_t bits) : sign(bits & kSign), exponent(bits >> kMantissaBits & 255), mantissa(bits & kMantissa) {}
  bool is_zero() const { return exponent == 0; }  // or subnormal
  bool is_infinite() const { return exponent == 255 && mantissa == 0; }
  bool is_nan() const { return exponent == 255 && mantissa != 0; }
};

// Evaluates the polynomial of a part.  x: the number of the part, then 17 bits of the argument within it.
inline int64_t interpolate(const Part* parts, uint32_t x) {
  const uint32_t offset = x & ((1u << kPartBits) - 1);
  return parts[x >> kPartBits].at(offset, kSquares[offset]);
}

// Returns the float mantissa * 2^(exponent - 23); mantissa: in [2^23, 2^24].
inline uint32_t assemble(uint32_t sign, int exponent, int64_t mantissa) {
  const int biased = exponent + kBias + (mantissa >> (kMantissaBits + 1) ? 1 : 0);
  if (biased <= 0) return sign;
  return biased >= 255 ? sign | kInfinity : sign | uint32_t(biased) << kMantissaBits | (uint32_t(mantissa) & kMantissa);
}

// Returns value * 2^-unit, truncated to 24 bits.
inline uint32_t normalize(uint32_t sign, uint64_t value, int unit) {
  if (value == 0) return sign;
  const int top = 63 - __builtin_clzll(value), shift = top - kMantissaBits;
  return assemble(sign, top - unit, int64_t(shift >= 0 ? value >> shift : value << -shift));
}

// Returns 2^24 / 1.mantissa, which is at least 2^23.
inline int64_t reciprocal_of(uint32_t mantissa) {
  if (mantissa == 0) return kHidden << 1;
  return interpolate(kRcp, mantissa << 1) >> (kUnit - kMantissaBits);
}
// Returns 2^24 / sqrt(1.mantissa), or of twice that number; it is at least 2^23.
inline int64_t reciprocal_root_of(bool twice, uint32_t mantissa) {
  if (!twice && mantissa == 0) return kHidden << 1;
  return interpolate(kRsqrt + (twice ? 64 : 0), mantissa) >> (kUnit - kMantissaBits);
}

inline uint32_t rcp(uint32_t bits) {
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (x.is_zero()) return x.sign | kInfinity;
  return x.is_infinite() ? x.sign : assemble(x.sign, kBias - int(x.exponent) - 1, reciprocal_of(x.mantissa));
}

// The exponent of a square root, and whether the root is of 1.mantissa or (is_odd) of twice that.
struct HalfExponent {
  bool is_odd;
  int half;
  explicit HalfExponent(int exponent) : is_odd(exponent & 1), half((exponent - (exponent & 1)) / 2) {}
};

inline uint32_t rsqrt(uint32_t bits) {
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (x.is_zero()) return x.sign | kInfinity;
  if (x.sign) return kNan;
  if (x.is_infinite()) return 0;
  const HalfExponent exponent(int(x.exponent) - kBias);
  return assemble(0, -exponent.half - 1, reciprocal_root_of(exponent.is_odd, x.mantissa));
}

inline uint32_t sqrt(uint32_t bits) {
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (x.is_zero()) return x.sign;
  if (x.sign) return kNan;
  if (x.is_infinite()) return kInfinity;
  const HalfExponent exponent(int(x.exponent) - kBias);
  const int64_t root = interpolate(kSqrt + (exponent.is_odd ? 64 : 0), x.mantissa);
  return assemble(0, exponent.half, root >> (kUnit - kMantissaBits));
}

// Returns |x| * 2^bits, truncated to an integer; 0 if no bit of it is below 2^32.
inline uint64_t fixed_point(const Float& x, int bits) {
  const int shift = int(x.exponent) - kBias - kMantissaBits + bits;
  if (x.is_zero() || shift <= -kMantissaBits - 1 || shift >= 32) return 0;
  const uint64_t mantissa = x.mantissa | kHidden;
  return shift >= 0 ? mantissa << shift : mantissa >> -shift;
}

inline uint32_t ex2(uint32_t bits) {
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (x.exponent >= kBias + 8) return x.sign ? 0 : kInfinity;
  int64_t fixed = int64_t(fixed_point(x, kMantissaBits));
  if (x.sign) fixed = fixed & kMantissa ? ~fixed : -fixed;  // only integers are exact
  const int64_t mantissa = interpolate(kEx2, uint32_t(fixed) & kMantissa) >> (kUnit - kMantissaBits);
  return assemble(0, int(fixed >> kMantissaBits), mantissa | kHidden);
}

inline uint32_t lg2(uint32_t bits) {
  constexpr int kFraction = 36;  // bits of a logarithm behind the point
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (x.is_zero()) return kSign | kInfinity;
  if (x.sign) return kNan;
  if (x.is_infinite()) return kInfinity;
  if (bits == kOne) return 0;
  const int64_t fraction = interpolate(kLg2, x.mantissa) >> (kUnit - kFraction);
  const int64_t value = int64_t(int(x.exponent) - kBias) * (int64_t(1) << kFraction) + fraction;
  return value < 0 ? normalize(kSign, uint64_t(~value), kFraction) : normalize(0, uint64_t(value), kFraction);
}

// Returns sin(2 pi x + quarters * pi/2).
inline uint32_t sine_of_turns(uint32_t bits, uint32_t quarters) {
  constexpr int kFraction = 37, kQuarterBits = kMantissaBits;
  const Float x(bits);
  if (x.exponent == 255) return kNan;
  const uint64_t turns = fixed_point(x, kQuarterBits + 2) + (uint64_t(quarters) << kQuarterBits);
  const uint32_t quarter = uint32_t(turns >> kQuarterBits) & 3, angle = uint32_t(turns) & kMantissa;
  const int64_t value = interpolate(kSine, quarter & 1 ? angle ^ kMantissa : angle) >> (kUnit - kFraction);
  const uint32_t sign = (quarter & 2 ? kSign : 0) ^ (quarters ? 0 : x.sign);
  return value >> kFraction ? sign | kOne : normalize(sign, uint64_t(value), kFraction);
}

inline uint32_t tanh(uint32_t bits) {
  constexpr int kFirst = kBias - 8, kPartsLog2[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};  // of [2^-8, 2^-7), ..., [4, 8)
  const Float x(bits);
  if (x.is_nan()) return kNan;
  if (int(x.exponent) < kFirst) return bits;
  if (x.exponent >= kBias + 3) return x.sign | kOne;
  const Part* parts = kTanh;
  for (int exponent = kFirst; exponent < int(x.exponent); exponent++) parts += 1 << kPartsLog2[exponent - kFirst];
  return normalize(x.sign, interpolate(parts, x.mantissa >> (kMantissaBits - kPartBits - kPartsLog2[x.exponent - kFirst])),
                   kUnit);
}

// rcp64h and rsqrt64h: the upper word of 1 / x or 1 / sqrt(x), from the upper word of the double x; subnormals are zeros.
constexpr uint32_t kUpperInfinity = 0x7ff00000, kUpperNan = 0x7fffffff, kUpperMantissa = 0xfffff;
inline uint32_t upper_word(uint32_t sign, int exponent, int64_t mantissa) {
  const int biased = exponent + 1023 + (mantissa >> (kMantissaBits + 1) ? 1 : 0);
  return biased <= 0 ? sign : sign | uint32_t(biased) << 20 | (uint32_t(mantissa >> 3) & kUpperMantissa);
}
inline uint32_t rcp64h(uint32_t high) {
  const uint32_t sign = high & kSign, exponent = high >> 20 & 2047, mantissa = high & kUpperMantissa;
  if (exponent == 2047) return mantissa ? kUpperNan : sign;
  return exponent == 0 ? sign | kUpperInfinity : upper_word(sign, 1022 - int(exponent), reciprocal_of(mantissa << 3));
}
inline uint32_t rsqrt64h(uint32_t high) {
  const uint32_t sign = high & kSign, exponent = high >> 20 & 2047, mantissa = high & kUpperMantissa;
  if (exponent == 2047 && mantissa) return kUpperNan;
  if (exponent == 0) return sign | kUpperInfinity;
  if (sign) return kUpperNan;
  if (exponent == 2047) return 0;
  const HalfExponent halved(int(exponent) - 1023);
  return upper_word(0, -halved.half - 1, reciprocal_root_of(halved.is_odd, mantissa << 3));
}

}  // namespace vgpu::multi_function
