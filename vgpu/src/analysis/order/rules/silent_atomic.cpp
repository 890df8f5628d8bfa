// Decides whether an atomic leaves the value that is there.
#include "silent_atomic.h"

namespace vgpu {
namespace {

int64_t signed_value(uint64_t value, uint32_t bytes) {
  const uint32_t shift = 64 - 8 * bytes;
  return static_cast<int64_t>(value << shift) >> shift;
}

bool is_less(uint64_t left, uint64_t right, ValueType type, uint32_t bytes) {
  if (type == ValueType::Signed) return signed_value(left, bytes) < signed_value(right, bytes);
  return left < right;
}

}  // namespace

bool is_silent(AtomicOperation operation, ValueType type, uint32_t bytes, uint64_t old, uint64_t operand, uint64_t expected) {
  if (operation == AtomicOperation::CompareAndSwap) return old != expected || operand == old;
  if (operation == AtomicOperation::Exchange) return operand == old;
  if (type != ValueType::Signed && type != ValueType::Unsigned) return false;
  switch (operation) {
    case AtomicOperation::Add: return operand == 0;
    case AtomicOperation::And: return (old & operand) == old;
    case AtomicOperation::Or: return (old | operand) == old;
    case AtomicOperation::Xor: return operand == 0;
    case AtomicOperation::Min: return !is_less(operand, old, type, bytes);
    case AtomicOperation::Max: return !is_less(old, operand, type, bytes);
    case AtomicOperation::Increment: return old == 0 && operand == 0;
    case AtomicOperation::Decrement: return old == operand && (old == 0);
    default: return false;
  }
}

}  // namespace vgpu
