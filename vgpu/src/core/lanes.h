// The 32 lanes of a warp, and loops over those of a mask.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "arithmetic/bits.h"

// Marks a loop whose iterations are independent of each other, so that compilers vectorize it.
#if defined(__clang__)
#define VGPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define VGPU_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace vgpu {

constexpr uint32_t kWarpSize = 32;
constexpr uint32_t kFullMask = 0xffffffffu;

// Calls f(lane) for each lane of the mask.  The loop for the common full mask is vectorized by the compiler.
template <class F>
inline void for_each_lane(uint32_t mask, F f) {
  if (mask == kFullMask) {
    VGPU_INDEPENDENT
    for (uint32_t lane = 0; lane < kWarpSize; lane++) f(lane);
    return;
  }
  for (uint32_t remaining = mask; remaining; remaining &= remaining - 1) f(static_cast<uint32_t>(__builtin_ctz(remaining)));
}

// Returns one of two numbers without a branch, by their bits, so that compilers vectorize the loop around it.
template <class T>
inline T blend(bool condition, T if_true, T if_false) {
  if constexpr (std::is_floating_point_v<T>) {
    return bit_cast<T>(blend(condition, bit_cast<BitsOf<T>>(if_true), bit_cast<BitsOf<T>>(if_false)));
  } else {
    return static_cast<T>(if_false ^ ((if_true ^ if_false) & (T(0) - static_cast<T>(condition))));
  }
}

// Returns the position of the n-th set bit; n counts from 0.
inline uint32_t nth_bit(uint32_t mask, uint32_t n) {
  for (; n; n--) mask &= mask - 1;
  return static_cast<uint32_t>(__builtin_ctz(mask));
}

// Assigns d[lane] = f(lane) for each lane of the mask.  f may also be called for other lanes: for most masks one loop over all
// lanes is faster.
template <class D, class F>
inline void assign_lanes(uint32_t mask, D* d, F f) {
  constexpr int kMinVectorized = 3;
  if (mask == kFullMask || __builtin_popcount(mask) < kMinVectorized)
    return for_each_lane(mask, [=](uint32_t l) { d[l] = static_cast<D>(f(l)); });
  VGPU_INDEPENDENT
  for (uint32_t lane = 0; lane < kWarpSize; lane++) d[lane] = mask >> lane & 1 ? static_cast<D>(f(lane)) : d[lane];
}

// Returns the mask of lanes for which f(lane) is true; f is called for all lanes.
template <class F>
inline uint32_t lanes_where(F f) {
  alignas(kWarpSize) uint8_t holds[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t lane = 0; lane < kWarpSize; lane++) holds[lane] = f(lane);
  const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(holds));
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7)));  // each byte's lowest bit
}

}  // namespace vgpu
