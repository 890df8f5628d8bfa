// What one instruction of a warp does to memory that other threads see, as observers are told of it.
#pragma once
#include <cstdint>

#include "arithmetic/atomic_operation.h"

namespace vgpu {

// How far an access is meant for other threads.  Strong: atomic, volatile or relaxed, two of these are no race; and what the
// words `acquire` and `release` add to that.
enum MemoryOrder : uint8_t { kWeak = 0, kStrong = 1, kAcquire = 2, kRelease = 4 };

enum class AccessKind : uint8_t { Read, Write, Atomic };

// By what the order of atomics may show: nothing, a sum's rounding, who comes last, the old value that each gets.
enum class OrderSensitivity : uint8_t { Nothing, Rounding, LastWriterWins, ReturnsOldValue };
constexpr OrderSensitivity order_sensitivity_of(AtomicOperation operation, bool is_integer, bool wants_old) {
  if (operation == AtomicOperation::Exchange || operation == AtomicOperation::CompareAndSwap)
    return OrderSensitivity::LastWriterWins;
  if (operation == AtomicOperation::Add && !is_integer) return OrderSensitivity::Rounding;
  return wants_old ? OrderSensitivity::ReturnsOldValue : OrderSensitivity::Nothing;
}

enum class ValueType : uint8_t { Unsigned, Signed, Float, Double, Half };  // Half: 16 bits, or two of them

// A value of each lane: in `count` registers, lane by lane, which hold its equal parts in the order of memory.
struct RegisterValues {
  const uint8_t* parts[4] = {};
  uint8_t count = 0;  // 0: not known
  uint8_t stride = 0;  // bytes of one lane's register
};

// Told just before it is done.
struct MemoryAccess {
  AccessKind kind;
  uint8_t order;  // of MemoryOrder
  OrderSensitivity sensitivity;
  uint32_t bytes;
  uint8_t* const* addresses;  // of each lane
  const uint8_t* lane_order;  // in the order in which they come
  uint32_t count;
  RegisterValues values = {};    // what is written; of an atomic its operand, or what a compare-and-swap may store
  RegisterValues expected = {};  // what a compare-and-swap compares with
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
  bool returns_old = false;  // an atomic's old value goes to a register
  bool strong() const { return order != kWeak; }
};

}  // namespace vgpu
