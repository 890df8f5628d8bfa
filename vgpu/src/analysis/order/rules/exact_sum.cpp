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

// Returns the exponent of the value's lowest set bit.
int16_t exponent_of_last_bit(double value) {
  if (value == 0 || !std::isfinite(value)) return kAnyMultiple;
  constexpr int kDigits = 52, kMinExponent = -1022;  // of a double: stored bits of the significand; smallest normal exponent
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint64_t digits = bits & ((1ull << kDigits) - 1), exponent = bits >> kDigits & 0x7ff;
  const uint64_t significand = exponent ? digits | 1ull << kDigits : digits;
  const int unit = (exponent ? static_cast<int>(exponent) - 1 : 0) + kMinExponent - kDigits;
  return static_cast<int16_t>(unit + __builtin_ctzll(significand));
}

// Returns 2^exponent as a double; infinity if it is too large.  exponent: that of a normal double.
double power_of_two(int exponent) {
  if (exponent > 1023) return INFINITY;
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double value;
  return std::memcpy(&value, &bits, sizeof value), value;
}

}  // namespace

void ExactSum::include(double value) {
  min_exponent_ = std::min(min_exponent_, exponent_of_last_bit(value));
  // Rounded up, since it is an upper bound.
  magnitude_ = std::isfinite(value) ? (magnitude_ + std::fabs(value)) * (1 + 0x1p-50) : INFINITY;
}

bool ExactSum::add(uint64_t bits, ValueType type, const uint8_t* start) {
  if (!count_) {
    uint64_t old = 0;
    std::memcpy(&old, start, type == ValueType::Double ? 8 : 4);
    min_exponent_ = kAnyMultiple, magnitude_ = 0, from_zero_ = value_of(old, type) == 0;
    include(value_of(old, type));
  }
  include(value_of(bits, type));
  count_ = static_cast<uint16_t>(std::min<int>(count_ + 1, UINT16_MAX));
  if (count_ == 1 || (count_ == 2 && from_zero_) || magnitude_ == 0) return true;
  const bool single = type == ValueType::Float;
  const int digits = single ? 24 : 53, min_normal_exponent = single ? -126 : -1022;
  return min_exponent_ >= min_normal_exponent && magnitude_ < power_of_two(min_exponent_ + digits) &&
         magnitude_ < (single ? 0x1p127 : 0x1p1022);
}

}  // namespace vgpu
