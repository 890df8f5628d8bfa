// The dot product of a tensor core: the sum of products of two rows of numbers, and an addend.
//
// It sums the products of a block and the addend at once: all are aligned to the largest exponent and truncated, their sum is exact,
// and it is truncated to a float or rounded to a half.  Blocks are processed in order.  The number of bits that are kept and the
// length of a block differ between architectures.  Others have measured both on hardware: P. Xie et al.,
// "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores", 2025 (arXiv:2511.10909); F. A. Khattak,
// M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores", 2025 (arXiv:2512.07004).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "bits.h"
#include "half.h"

namespace vgpu {

struct TensorCore {
  int fraction_bits;  // kept of each summand, below the largest exponent
  uint32_t block_bytes;  // bytes of each row in a block
  int zero_exponent_of_floats, zero_exponent_of_halves;  // the exponent of a zero summand, by the type of the sum
};

// compute_capability: 80 for 8.0.  Matrix instructions before 7.5 are not supported.
inline TensorCore tensor_core_of(int compute_capability) {
  return compute_capability < 90 ? TensorCore{24, 16, -132, -20} : TensorCore{25, 32, -133, -21};
}

// A number as significand * 2^(exponent - fraction bits of its format).
struct Scaled { int32_t significand, exponent; };

template <int kExponentBits, int kFractionBits> struct BinaryFormat {
  static constexpr int kFraction = kFractionBits;
  static constexpr uint32_t kSpecial = (1u << kExponentBits) - 1;  // the exponent of infinities and NaNs
  static uint32_t exponent_of(uint32_t bits) { return bits >> kFractionBits & kSpecial; }
  static bool is_finite(uint32_t bits) { return exponent_of(bits) != kSpecial; }
  static Scaled scaled(uint32_t bits) {
    const uint32_t exponent = exponent_of(bits), fraction = bits & ((1u << kFractionBits) - 1);
    const auto magnitude = static_cast<int32_t>(fraction | (exponent ? 1u << kFractionBits : 0));
    const int32_t unbiased = static_cast<int32_t>(std::max(exponent, 1u)) - static_cast<int32_t>(kSpecial >> 1);
    return {bits >> (kExponentBits + kFractionBits) & 1 ? -magnitude : magnitude, unbiased};
  }
  static double value(uint32_t bits) {
    const Scaled x = scaled(bits);
    if (is_finite(bits)) return std::ldexp(x.significand, x.exponent - kFractionBits);
    if (bits & ((1u << kFractionBits) - 1)) return NAN;
    return x.significand < 0 ? -INFINITY : INFINITY;
  }
};

// The types of a sum.
struct FloatSum : BinaryFormat<8, 23> {
  static int zero_exponent(const TensorCore& core) { return core.zero_exponent_of_floats; }
  static uint32_t rounded(double x) {  // rounded toward zero; zeros have no sign
    if (x != x) return 0x7fffffff;
    float nearest = static_cast<float>(x);
    if (std::fabs(x) < 0x1p128 && std::fabs(static_cast<double>(nearest)) > std::fabs(x))
      nearest = bit_cast<float>(bit_cast<uint32_t>(nearest) - 1);
    return nearest == 0 ? 0 : bit_cast<uint32_t>(nearest);
  }
};
struct HalfSum : BinaryFormat<5, 10> {
  static int zero_exponent(const TensorCore& core) { return core.zero_exponent_of_halves; }
  static uint32_t rounded(double x) {  // rounded to nearest
    const uint32_t bits = to_half(x);
    return bits == 0x8000 ? 0 : bits;
  }
};

constexpr uint32_t kMaxBlock = 16;

// Returns the bits of one block's sum.  a and b: `count` numbers in the format F; c: the bits of the addend, a Sum.
template <class F, class Sum>
uint32_t add_block(const TensorCore& core, const uint32_t* a, const uint32_t* b, uint32_t count, uint32_t c) {
  int64_t significands[kMaxBlock + 1];
  int32_t exponents[kMaxBlock + 1];
  bool finite = Sum::is_finite(c);
  for (uint32_t k = 0; k < count; k++) {
    const Scaled x = F::scaled(a[k]), y = F::scaled(b[k]);
    finite = finite && F::is_finite(a[k]) && F::is_finite(b[k]);
    significands[k] = int64_t(x.significand) * y.significand;
    exponents[k] = x.exponent + y.exponent;
  }
  if (!finite) {
    double sum = Sum::value(c);
    for (uint32_t k = 0; k < count; k++) sum += F::value(a[k]) * F::value(b[k]);
    return Sum::rounded(sum);
  }
  const Scaled added = Sum::scaled(c);
  significands[count] = added.significand, exponents[count] = added.exponent;
  for (uint32_t k = 0; k <= count; k++)
    if (significands[k] == 0) exponents[k] = Sum::zero_exponent(core);
  const int32_t top = *std::max_element(exponents, exponents + count + 1);
  int64_t sum = 0;
  for (uint32_t k = 0; k <= count; k++) {
    const int shift = core.fraction_bits - (k < count ? 2 * F::kFraction : Sum::kFraction) - (top - exponents[k]);
    const int64_t magnitude = std::llabs(significands[k]), cut = shift >= 0    ? magnitude << shift
                                                                 : shift > -63 ? magnitude >> -shift
                                                                               : 0;
    sum += significands[k] < 0 ? -cut : cut;
  }
  return Sum::rounded(std::ldexp(static_cast<double>(sum), top - core.fraction_bits));
}

// Adds all blocks.  a and b: `count` numbers in the format F, of `bytes` each.
template <class F, class Sum>
uint32_t add_products(const TensorCore& core, const uint32_t* a, const uint32_t* b, uint32_t count, uint32_t bytes,
                      uint32_t c) {
  const uint32_t block = core.block_bytes / bytes;
  for (uint32_t k = 0; k < count; k += block) c = add_block<F, Sum>(core, a + k, b + k, std::min(block, count - k), c);
  return c;
}

}  // namespace vgpu
