// Silent atomics, which do not change the value: a maximum that is not greater, `and` with ones, a failed compare-and-swap.
//
// What it accepts: integer atomics and swaps whose result is the old value.  Why that is sound: such an atomic is a
// read and a write of the same value, so rules/unchanged_value.h holds for it.  Example: flags that are set by `atomicOr` again.
#pragma once
#include <cstdint>

#include "core/memory_access.h"

namespace vgpu {

// Returns whether the operation leaves the old value; values are in the low `bytes`.  false also if its result is not known.
bool is_silent(AtomicOperation operation, ValueType type, uint32_t bytes, uint64_t old, uint64_t operand, uint64_t expected);

}  // namespace vgpu
