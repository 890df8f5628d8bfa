// Half precision and bfloat16, by their bits.
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

// A double rounded once into `fraction_bits` of fraction and exponents down to 2^`least`; as bits, without the sign.
// Values beyond the largest become infinite, or the largest where the rounding does not go there.
inline uint32_t round_magnitude(double x, int fraction_bits, int least, int greatest, RoundingMode to, bool negative) {
  int exponent;
  std::frexp(x, &exponent);  // x = m * 2^exponent with m in [0.5, 1)
  int unit = std::max(exponent - 1, least) - fraction_bits;  // of the last place
  double scaled = std::ldexp(x, -unit), whole = std::floor(scaled), rest = scaled - whole;
  uint64_t steps = static_cast<uint64_t>(whole);
  bool away = to == RoundingMode::Up     ? !negative && rest > 0
              : to == RoundingMode::Down ? negative && rest > 0
              : to == RoundingMode::Zero ? false
                                         : rest > 0.5 || (rest == 0.5 && (steps & 1));
  steps += away;
  int64_t biased = int64_t(unit) + fraction_bits - least;  // 0: of the subnormals, and of the first normal ones
  uint64_t bits = (uint64_t(biased) << fraction_bits) + steps;
  uint64_t infinite = uint64_t(greatest - least + 2) << fraction_bits;
  if (bits >= infinite) {
    bool stays = to == RoundingMode::Zero || (to == RoundingMode::Up && negative) || (to == RoundingMode::Down && !negative);
    return static_cast<uint32_t>(stays ? infinite - 1 : infinite);
  }
  return static_cast<uint32_t>(bits);
}

// As a float whose last bit is set where it is not exact: rounded again, to fewer bits, it is rounded right.
inline float odd_float(double x) {
  const float near = static_cast<float>(x);
  if (static_cast<double>(near) == x || std::isinf(near)) return near;
  uint32_t bits = bit_cast<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(x)) bits--;
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

// relu: the greater one of a rounded result and +0.  The NaN that conversions give has no sign.
inline uint16_t relu(uint16_t bits) { return bits & 0x8000u ? 0 : bits; }

// a + b in double, whose last bit is set where the sum was not exact: rounded again it is rounded right.
inline double odd_sum(double a, double b) {
  double sum = a + b, back = sum - a, lost = (a - (sum - back)) + (b - back);
  if (lost == 0 || sum != sum || std::isinf(sum)) return sum;
  uint64_t bits = bit_cast<uint64_t>(sum);
  if (bits & 1) return sum;
  bool towards_zero = (lost < 0) != (sum < 0);
  return bit_cast<double>(towards_zero ? bits - 1 : bits | 1);
}

// How the two formats go in and out of double, and lose their subnormals.
struct HalfFormat {
  static double from_bits(uint16_t x) { return half_to_float(x); }
  static uint16_t to_bits(double x, RoundingMode to = RoundingMode::Nearest) { return to_half(x, to); }
  static uint16_t flush_subnormal(uint16_t x) { return x & 0x7c00 ? x : x & 0x8000; }
  static constexpr double kMinNormal = 0x1p-14, kBeyond = 0x1p16;
};
struct BfloatFormat {
  static double from_bits(uint16_t x) { return bfloat16_to_float(x); }
  static uint16_t to_bits(double x, RoundingMode to = RoundingMode::Nearest) { return to_bfloat16(x, to); }
  static uint16_t flush_subnormal(uint16_t x) { return x & 0x7f80 ? x : x & 0x8000; }
  static constexpr double kMinNormal = 0x1p-126, kBeyond = 0x1p128;
};

}  // namespace vgpu
