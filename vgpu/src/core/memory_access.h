// An access of a warp to memory that other threads can access, as the analyses of a launch (core/observer.h) receive it.
#pragma once
#include <cstdint>

#include "arithmetic/atomic_operation.h"

namespace vgpu {

// The memory order of an access.  Strong: atomic, volatile or relaxed; two strong accesses are not a race.  The bits of acquire
// and release come in addition.
enum MemoryOrder : uint8_t { kWeak = 0, kStrong = 1, kAcquire = 2, kRelease = 4 };

enum class AccessKind : uint8_t { Read, Write, Atomic };

// How the order of atomics can become visible: not at all, by a sum's rounding, by the last writer, by the returned old values.
enum class OrderSensitivity : uint8_t { Nothing, Rounding, LastWriterWins, ReturnsOldValue };
constexpr OrderSensitivity order_sensitivity_of(AtomicOperation operation, bool is_integer, bool returns_old) {
  if (operation == AtomicOperation::Exchange || operation == AtomicOperation::CompareAndSwap)
    return OrderSensitivity::LastWriterWins;
  if (operation == AtomicOperation::Add && !is_integer) return OrderSensitivity::Rounding;
  return returns_old ? OrderSensitivity::ReturnsOldValue : OrderSensitivity::Nothing;
}

enum class ValueType : uint8_t { Unsigned, Signed, Float, Double, Half };  // Half: one float of 16 bits (f16 or bf16), or two

// A value of each lane, in equal parts in `count` registers; the parts are in the order of memory.
struct RegisterValues {
  const uint8_t* parts[4] = {};
  uint8_t count = 0;  // 0: not known
  uint8_t stride = 0;  // bytes of one lane's register
  uint32_t part_bytes(uint32_t bytes) const { return count ? bytes / count : bytes; }  // bytes: of the whole value
};

// Analyses receive it just before the access is performed.
struct MemoryAccess {
  AccessKind kind;
  uint8_t order;  // bits of MemoryOrder
  OrderSensitivity sensitivity;
  uint32_t bytes;
  uint8_t* const* addresses;  // of each lane
  const uint8_t* lane_order;  // active lanes in order of execution
  uint32_t count;  // of active lanes
  RegisterValues values = {};  // written values; of an atomic the operand, of a compare-and-swap the new value
  RegisterValues expected = {};  // of a compare-and-swap
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
  bool returns_old = false;  // of an atomic: the old value goes to a register
  bool contiguous = false;  // all 32 lanes access consecutive elements (is_contiguous() in access.h)
  bool is_strong() const { return order != kWeak; }
};

}  // namespace vgpu
