// Decides whether a sum of floats is exact in every order.
#include "exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace vgpu {
namespace {

constexpr int16_t kAnyMultiple = 1 << 14;  // zero is a multiple of everything

double value_of(uint64_t bits, ValueType type) {
  if (type == ValueType::Double) {
    double value;
    return std::memcpy(&value, &bits, sizeof value), value;
  }
  const uint32_t low = static_cast<uint32_t>(bits);
  float value;
  return std::memcpy(&value, &low, sizeof value), value;
}

// The power of two of its last bit that is set.
int16_t last_bit(double value) {
  if (value == 0 || !std::isfinite(value)) return kAnyMultiple;
  constexpr int kDigits = 52, kLeastExponent = -1022;  // of a double: those that are stored; of what is not subnormal
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint64_t digits = bits & ((1ull << kDigits) - 1), exponent = bits >> kDigits & 0x7ff;
  const uint64_t significand = exponent ? digits | 1ull << kDigits : digits;
  const int unit = (exponent ? static_cast<int>(exponent) - 1 : 0) + kLeastExponent - kDigits;
  return static_cast<int16_t>(unit + __builtin_ctzll(significand));
}

// 2 to the power of an exponent of a double that is not subnormal; beyond, infinity.
double power_of_two(int exponent) {
  if (exponent > 1023) return INFINITY;
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double value;
  return std::memcpy(&value, &bits, sizeof value), value;
}

}  // namespace

void ExactSum::include(double value) {
  least_ = std::min(least_, last_bit(value));
  // Rounded up, as it is a bound.
  most_ = std::isfinite(value) ? (most_ + std::fabs(value)) * (1 + 0x1p-50) : INFINITY;
}

bool ExactSum::add(uint64_t bits, ValueType type, const uint8_t* start) {
  if (!count_) {
    uint64_t old = 0;
    std::memcpy(&old, start, type == ValueType::Double ? 8 : 4);
    least_ = kAnyMultiple, most_ = 0, from_zero_ = value_of(old, type) == 0;
    include(value_of(old, type));
  }
  include(value_of(bits, type));
  count_ = static_cast<uint16_t>(std::min<int>(count_ + 1, UINT16_MAX));
  if (count_ == 1 || (count_ == 2 && from_zero_) || most_ == 0) return true;
  const bool single = type == ValueType::Float;
  const int digits = single ? 24 : 53, least_normal = single ? -126 : -1022;
  return least_ >= least_normal && most_ < power_of_two(least_ + digits) && most_ < (single ? 0x1p127 : 0x1p1022);
}

}  // namespace vgpu
