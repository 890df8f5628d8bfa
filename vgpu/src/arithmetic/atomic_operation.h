// The operations of atomics on old values and operands, for all instruction sets.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "float.h"
#include "half.h"

namespace vgpu {

// None: unknown.
enum class AtomicOperation : uint8_t { None, Add, Min, Max, And, Or, Xor, Exchange, CompareAndSwap, Increment, Decrement };

// Packed half or bfloat16 values; H: HalfFormat or BfloatFormat, W: the word that contains them.
template <class H, class W>
struct PackedHalves {
  W bits;
};
template <class T>
bool bits_equal(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;  // NOLINT(bugprone-suspicious-memory-comparison): zeros of two signs differ
}

template <class H, class W>
PackedHalves<H, W> add_values(PackedHalves<H, W> a, PackedHalves<H, W> b) {
  W sum = 0;
  for (uint32_t shift = 0; shift < 8 * sizeof(W); shift += 16)
    sum |= W(H::to_bits(H::from_bits(uint16_t(a.bits >> shift)) + H::from_bits(uint16_t(b.bits >> shift)))) << shift;
  return {sum};
}
template <class T>
T add_values(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return canonicalize_nan(a + b);
  else return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}

// Returns the new value.  b: the operand, of a compare-and-swap the expected value; c: its new value.
template <class T, AtomicOperation kOp>
T apply_atomic(T old, T b, T c) {
  using Op = AtomicOperation;
  if constexpr (kOp == Op::Exchange) return b;
  else if constexpr (kOp == Op::CompareAndSwap) return bits_equal(old, b) ? c : old;
  else if constexpr (kOp == Op::Add) return add_values(old, b);
  else if constexpr (std::is_floating_point_v<T>) return kOp == Op::Min ? minimum(old, b) : maximum(old, b);
  else if constexpr (kOp == Op::Min) return std::min(old, b);
  else if constexpr (kOp == Op::Max) return std::max(old, b);
  else if constexpr (kOp == Op::And) return old & b;
  else if constexpr (kOp == Op::Or) return old | b;
  else if constexpr (kOp == Op::Xor) return old ^ b;
  else if constexpr (kOp == Op::Increment) return old >= b ? T(0) : static_cast<T>(old + 1);
  else return old == 0 || old > b ? b : static_cast<T>(old - 1);
}

// Float additions in global memory flush subnormals to zero; those in shared memory do not.
template <class T, AtomicOperation kOp>
T apply_atomic_in(bool in_shared, T old, T b, T c) {
  if constexpr (std::is_same_v<T, float> && kOp == AtomicOperation::Add)
    if (!in_shared) return flush_subnormal(apply_atomic<T, kOp>(flush_subnormal(old), flush_subnormal(b), c));
  return apply_atomic<T, kOp>(old, b, c);
}

}  // namespace vgpu
