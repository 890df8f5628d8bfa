// Conversions of half precision and bfloat16, which are represented by their bits.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bits.h"
#include "rounding.h"

namespace vgpu {

inline float bfloat16_to_float(uint16_t bits) { return bit_cast<float>(uint32_t(bits) << 16); }

inline float half_to_float(uint16_t bits) { return _cvtsh_ss(bits); }

// Rounds a positive double once to a format with `fraction_bits` bits of fraction and exponents of normal numbers from
// `min_exponent` to `max_exponent`; returns the bits without a sign.  Overflow gives infinity or the largest number, depending on
// the rounding.
inline uint32_t round_magnitude(double x, int fraction_bits, int min_exponent, int max_exponent, RoundingMode mode,
                                bool negative) {
  int exponent;
  std::frexp(x, &exponent);  // x = m * 2^exponent with m in [0.5, 1)
  int unit = std::max(exponent - 1, min_exponent) - fraction_bits;  // of the last place
  double scaled = std::ldexp(x, -unit), integer = std::floor(scaled), remainder = scaled - integer;
  uint64_t steps = static_cast<uint64_t>(integer);
  bool rounds_up = mode == RoundingMode::Up     ? !negative && remainder > 0
                   : mode == RoundingMode::Down ? negative && remainder > 0
                   : mode == RoundingMode::Zero ? false
                                                : remainder > 0.5 || (remainder == 0.5 && (steps & 1));
  steps += rounds_up;
  int64_t biased = int64_t(unit) + fraction_bits - min_exponent;  // 0: of the subnormals, and of the first normal ones
  uint64_t bits = (uint64_t(biased) << fraction_bits) + steps;
  uint64_t infinity = uint64_t(max_exponent - min_exponent + 2) << fraction_bits;
  if (bits >= infinity) {
    bool saturates =
        mode == RoundingMode::Zero || (mode == RoundingMode::Up && negative) || (mode == RoundingMode::Down && !negative);
    return static_cast<uint32_t>(saturates ? infinity - 1 : infinity);
  }
  return static_cast<uint32_t>(bits);
}

// Rounds to odd: the last bit is set if the result is not exact.  A second rounding to fewer bits then gives the correct result.
inline float odd_float(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isinf(nearest)) return nearest;
  uint32_t bits = bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) bits--;
  return bit_cast<float>(bits | 1);
}

inline uint16_t to_half(double x, RoundingMode to = RoundingMode::Nearest) {
  if (x != x) return 0x7fff;
  if (to == RoundingMode::Nearest && std::fabs(x) < 65536)
    return static_cast<uint16_t>(_cvtss_sh(odd_float(x), _MM_FROUND_TO_NEAREST_INT));
  bool negative = std::signbit(x);
  if (std::isinf(x)) return negative ? 0xfc00 : 0x7c00;
  uint32_t bits = x == 0 ? 0 : round_magnitude(std::fabs(x), 10, -14, 15, to, negative);
  return static_cast<uint16_t>(bits | (negative ? 0x8000u : 0));
}

inline uint16_t to_bfloat16(double x, RoundingMode to = RoundingMode::Nearest) {
  if (x != x) return 0x7fff;
  if (to == RoundingMode::Nearest && std::fabs(x) < 0x1p127) {
    const uint32_t bits = bit_cast<uint32_t>(odd_float(x));
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  bool negative = std::signbit(x);
  if (std::isinf(x)) return negative ? 0xff80 : 0x7f80;
  uint32_t bits = x == 0 ? 0 : round_magnitude(std::fabs(x), 7, -126, 127, to, negative);
  return static_cast<uint16_t>(bits | (negative ? 0x8000u : 0));
}

// Returns the maximum of a rounded result and +0.  NaNs of conversions have no sign.
inline uint16_t relu(uint16_t bits) { return bits & 0x8000u ? 0 : bits; }

// Returns a + b rounded to odd (see odd_float()).
inline double odd_sum(double a, double b) {
  double sum = a + b, back = sum - a, lost = (a - (sum - back)) + (b - back);
  if (lost == 0 || sum != sum || std::isinf(sum)) return sum;
  uint64_t bits = bit_cast<uint64_t>(sum);
  if (bits & 1) return sum;
  bool towards_zero = (lost < 0) != (sum < 0);
  return bit_cast<double>(towards_zero ? bits - 1 : bits | 1);
}

// Conversions of the two formats from and to double, and flushing of subnormals.  kOverflow: the power of two above all
// finite values.
struct HalfFormat {
  static double from_bits(uint16_t x) { return half_to_float(x); }
  static uint16_t to_bits(double x, RoundingMode to = RoundingMode::Nearest) { return to_half(x, to); }
  static uint16_t flush_subnormal(uint16_t x) { return x & 0x7c00 ? x : x & 0x8000; }
  static constexpr double kMinNormal = 0x1p-14, kOverflow = 0x1p16;
};
struct BfloatFormat {
  static double from_bits(uint16_t x) { return bfloat16_to_float(x); }
  static uint16_t to_bits(double x, RoundingMode to = RoundingMode::Nearest) { return to_bfloat16(x, to); }
  static uint16_t flush_subnormal(uint16_t x) { return x & 0x7f80 ? x : x & 0x8000; }
  static constexpr double kMinNormal = 0x1p-126, kOverflow = 0x1p128;
};

}  // namespace vgpu
