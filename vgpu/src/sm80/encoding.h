// The 128-bit encoding of an sm_80 instruction.
#pragma once
#include <cstdint>

namespace vgpu::sm80 {

constexpr uint32_t kEncodingBytes = 16;
constexpr uint32_t kRZ = 255, kURZ = 63, kPT = 7;  // registers that are always zero; the predicate that is always true

struct Encoding {
  uint64_t low = 0, high = 0;

  uint64_t bits(uint32_t at, uint32_t width) const {
    uint64_t value = at >= 64 ? high >> (at - 64) : at == 0 ? low : low >> at | high << (64 - at);
    return width == 64 ? value : value & ((uint64_t(1) << width) - 1);
  }
  int64_t signed_bits(uint32_t at, uint32_t width) const {
    return static_cast<int64_t>(bits(at, width) << (64 - width)) >> (64 - width);
  }
  bool bit(uint32_t at) const { return bits(at, 1) != 0; }
  void set(uint32_t at, uint32_t width) {
    for (uint32_t k = at; k < at + width; k++) (k < 64 ? low : high) |= uint64_t(1) << (k % 64);
  }
};

}  // namespace vgpu::sm80
