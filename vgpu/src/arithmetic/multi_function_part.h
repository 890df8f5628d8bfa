// The quadratic polynomials of multi_function.h, and the truncated squares that they use.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace vgpu::multi_function {

// The polynomial c0 + c1 x + c2 square(x) of one part of an interval; x has 17 bits.
struct Part {
  int64_t c0;
  int32_t c1, c2;
  int64_t at(uint32_t x, uint16_t square) const { return c0 + int64_t(c1) * x + int64_t(c2) * square; }
};

// A table of x^2 / 2^19 for x of 17 bits: the sum of partial products of two bits, without those below 2^19.
class Squares {
 public:
  Squares() {
    std::vector<uint64_t> sums(kCount);
    for (uint32_t bit = 0; 1u << bit < kCount; bit++)
      for (uint32_t rest = 0; rest < 1u << bit; rest++) {
        const uint32_t kept = bit + 1 < kDropped ? rest >> (kDropped - 1 - bit) << (kDropped - 1 - bit) : rest;
        sums[1u << bit | rest] =
            sums[rest] + (2 * bit >= kDropped ? uint64_t(1) << 2 * bit : 0) + (uint64_t(kept) << (bit + 1));
      }
    for (uint32_t x = 0; x < kCount; x++) squares_[x] = static_cast<uint16_t>(sums[x] >> kDropped);
  }
  uint16_t operator[](uint32_t x) const { return squares_[x]; }

 private:
  static constexpr uint32_t kCount = 1 << 17, kDropped = 19;
  std::array<uint16_t, kCount> squares_;
};
inline const Squares kSquares;

}  // namespace vgpu::multi_function
