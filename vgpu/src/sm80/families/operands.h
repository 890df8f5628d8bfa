// How instructions read and write registers: for all lanes at once, so that the loops are the compiler's to vectorize.
//
// Of a core's Instruction here: a, b, c are the operands, d is the register that is written, e a predicate that is read.
#pragma once
#include <algorithm>

#include "arithmetic/bits.h"
#include "sm80/function_decoder.h"

namespace vgpu::sm80 {

inline const uint32_t* words(const WarpContext& warp, uint32_t at) {
  return reinterpret_cast<const uint32_t*>(warp.frame + at);
}
inline uint32_t* words(WarpContext& warp, uint32_t at) { return lane_values<uint32_t>(warp, at); }

// A lane of a pair of registers.
inline uint64_t pair_of(const uint32_t* low, uint32_t lane) { return low[lane] | uint64_t(low[lane + kWarpSize]) << 32; }

template <class F> inline void write_words(WarpContext& warp, uint32_t at, F f) {
  assign_lanes(warp.active_mask, words(warp, at), f);
}

// `count` registers of all lanes, the first at `at`, as an observer is told of their values.
inline RegisterValues values_in(const WarpContext& warp, uint32_t at, uint32_t count) {
  RegisterValues made = {{}, static_cast<uint8_t>(count), 4};
  for (uint32_t k = 0; k < count; k++) made.parts[k] = warp.frame + at + k * kRowBytes;
  return made;
}

// A schedule may decide this result.
inline void tell_source(const WarpContext& warp, const Instruction& i, ScheduleSource source) {
  if (warp.observer) warp.observer->on_schedule_source(i, source);
}

// Who takes part is the same in every schedule: all that live.
inline void check_all_together(const WarpContext& warp, const Instruction& i) {
  if (!warp.convergence->has_all(static_cast<uint32_t>(__builtin_ctz(warp.active_mask))))
    tell_source(warp, i, ScheduleSource::ActiveLanes);
}

// Operands may share registers with the result, so all lanes are computed before any is written.
template <class F> inline void write_pairs(WarpContext& warp, uint32_t at, F f) {
  alignas(64) uint32_t low[kWarpSize], high[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint64_t value = f(l);
    low[l] = static_cast<uint32_t>(value), high[l] = static_cast<uint32_t>(value >> 32);
  }
  write_words(warp, at, [&](uint32_t l) { return low[l]; });
  write_words(warp, at + kRowBytes, [&](uint32_t l) { return high[l]; });
}

inline uint32_t read_predicate(WarpContext& warp, uint32_t where) {
  return predicate(warp, where & ~kNegated) ^ (where & kNegated ? kFullMask : 0);
}

// Which operands are negated or taken without their sign, in vector_registers[kFlags].
enum SignFlags : uint32_t { kNegateA = 1, kAbsoluteA = 2, kNegateB = 4, kAbsoluteB = 8, kNegateC = 16, kAbsoluteC = 32 };

inline uint32_t sign_flags(const Decoded& c) {
  uint32_t flags = 0;
  for (const Source* one : {&c.c, &c.b, &c.a}) flags = flags << 2 | uint32_t(one->absolute) << 1 | uint32_t(one->negated);
  return flags;
}

// The sign bit that an operand keeps, and the one that it gets.
template <class T> struct Signs {
  T keep, flip;
  Signs(uint32_t flags, uint32_t operand) {  // operand: 0 for a, 1 for b, 2 for c
    constexpr T kSign = T(1) << (8 * sizeof(T) - 1);
    keep = flags >> (2 * operand + 1) & 1 ? static_cast<T>(~kSign) : static_cast<T>(~T(0));
    flip = flags >> (2 * operand) & 1 ? kSign : T(0);
  }
  T of(T bits) const { return (bits & keep) ^ flip; }
};

// How a comparison's result and a predicate are joined: AND, OR, XOR.
inline uint32_t join(uint32_t how, uint32_t a, uint32_t b) { return how == 0 ? a & b : how == 1 ? a | b : a ^ b; }

}  // namespace vgpu::sm80
