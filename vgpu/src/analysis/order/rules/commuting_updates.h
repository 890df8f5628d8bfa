// Rule 4, commuting updates: atomics of one family whose old values are unused.
//
// What it accepts: add, and, or, xor, min, max of one type and width; inc or dec with one bound; compare-and-swap loops that
// compute one of them (ptx/update_loop.h); sums of floats as far as rules/exact_sum.h goes.  Why that is sound: every order
// leaves the same bytes, and no thread reads intermediate values.  A used old value, or a mixture of families, depends on the
// order.  Example: a histogram of integers.
#pragma once
#include "../phase.h"

namespace vgpu {

// Of a sum of doubles, only the first word's phase (offset 0) keeps the sum.
inline bool is_float_sum(const UpdateFamily& family) {
  const bool real = family.type == ValueType::Float || family.type == ValueType::Double;
  return family.operation == AtomicOperation::Add && real && !family.offset;
}

inline bool joins_commuting_updates(const Updates& updates, const LaneAccess& access) {
  if (access.kind != PhaseKind::CommutingUpdates || !(access.family == updates.family)) return false;
  // Besides float sums, only inc and dec have an operand here, which is their bound; of all others it is 0.
  return is_float_sum(access.family) || access.operand == updates.operand;
}

}  // namespace vgpu
