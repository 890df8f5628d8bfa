// Reading and writing of registers for all lanes at once, in loops that compilers vectorize.
//
// Fields of Instruction: a, b and c are the operands, d is the register that is written, e a predicate that is read.
// These are offsets in the warp's frame: of a register's 32 words, or of a predicate's word, which has a bit for each lane.
#pragma once
#include <algorithm>

#include "arithmetic/bits.h"
#include "sm80/function_decoder.h"

namespace vgpu::sm80 {

inline const uint32_t* lane_words(const WarpContext& warp, uint32_t offset) {
  return reinterpret_cast<const uint32_t*>(warp.frame + offset);
}
inline uint32_t* lane_words(WarpContext& warp, uint32_t offset) { return lane_values<uint32_t>(warp, offset); }

// Returns a lane's 64-bit value of a pair of registers.
inline uint64_t pair_of(const uint32_t* low, uint32_t lane) { return low[lane] | uint64_t(low[lane + kWarpSize]) << 32; }

template <class F> inline void write_lane_words(WarpContext& warp, uint32_t offset, F f) {
  assign_lanes(warp.active_mask, lane_words(warp, offset), f);
}

// Describes `count` registers, the first one at `offset`, for observers.
inline RegisterValues register_values(const WarpContext& warp, uint32_t offset, uint32_t count) {
  RegisterValues values = {{}, static_cast<uint8_t>(count), 4};
  for (uint32_t k = 0; k < count; k++) values.parts[k] = warp.frame + offset + k * kWarpRegisterBytes;
  return values;
}

// Notifies the observer that the schedule decides this result.
inline void notify_schedule_source(const WarpContext& warp, const Instruction& i, ScheduleSource source) {
  if (warp.observer) warp.observer->on_schedule_source(i, source);
}

// Notifies the observer if the set of active lanes may depend on the schedule: if these are not all live lanes, and the program has
// not made sure that they are converged.
inline void check_convergence(const WarpContext& warp, const Instruction& i) {
  const Convergence& convergence = *warp.convergence;
  const uint32_t active = warp.active_mask;
  if (!convergence.is_fully_converged(static_cast<uint32_t>(__builtin_ctz(active))) && !convergence.is_confirmed_set(active))
    notify_schedule_source(warp, i, ScheduleSource::ActiveLanes);
}

// Writes pairs of registers.  Operands may overlap with the result: f(lane) reads them before that lane's result is written.
template <class F> inline void write_pairs(WarpContext& warp, uint32_t offset, F f) {
  if (warp.active_mask == kFullMask) {
    uint32_t *lows = lane_words(warp, offset), *highs = lane_words(warp, offset + kWarpRegisterBytes);
    VGPU_INDEPENDENT
    for (uint32_t l = 0; l < kWarpSize; l++) {
      const uint64_t value = f(l);
      lows[l] = static_cast<uint32_t>(value), highs[l] = static_cast<uint32_t>(value >> 32);
    }
    return;
  }
  alignas(64) uint32_t low[kWarpSize], high[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint64_t value = f(l);
    low[l] = static_cast<uint32_t>(value), high[l] = static_cast<uint32_t>(value >> 32);
  }
  write_lane_words(warp, offset, [&](uint32_t l) { return low[l]; });
  write_lane_words(warp, offset + kWarpRegisterBytes, [&](uint32_t l) { return high[l]; });
}

// kNegated in the offset: the predicate is inverted.
inline uint32_t read_predicate(WarpContext& warp, uint32_t offset) {
  return predicate(warp, offset & ~kNegated) ^ (offset & kNegated ? kFullMask : 0);
}

// Operands that are negated or replaced by their absolute values; stored in vector_registers[kFlags].
enum SignFlags : uint32_t { kNegateA = 1, kAbsoluteA = 2, kNegateB = 4, kAbsoluteB = 8, kNegateC = 16, kAbsoluteC = 32 };

inline uint32_t sign_flags(const Decoded& c) {
  uint32_t flags = 0;
  for (const Source* source : {&c.c, &c.b, &c.a})
    flags = flags << 2 | uint32_t(source->absolute) << 1 | uint32_t(source->negated);
  return flags;
}

// Masks that apply the absolute value and the negation of an operand to its sign bit.
template <class T> struct Signs {
  T keep, flip;
  Signs(uint32_t flags, uint32_t operand) {  // operand: 0 for a, 1 for b, 2 for c
    constexpr T kSign = T(1) << (8 * sizeof(T) - 1);
    keep = flags >> (2 * operand + 1) & 1 ? static_cast<T>(~kSign) : static_cast<T>(~T(0));
    flip = flags >> (2 * operand) & 1 ? kSign : T(0);
  }
  T of(T bits) const { return (bits & keep) ^ flip; }
};

// Combines a comparison's result with a predicate.  operation: 0 AND, 1 OR, 2 XOR.
inline uint32_t combine(uint32_t operation, uint32_t a, uint32_t b) {
  return operation == 0 ? a & b : operation == 1 ? a | b : a ^ b;
}

}  // namespace vgpu::sm80
