// Atomics that change nothing: a maximum that is not above, `and` with ones, a compare-and-swap in vain.
//
// What it accepts: integer atomics and swaps whose result is the value that is there.  Why that is sound: such an atomic is a
// read and a write of the same value, so rules/same_value.h holds for it.  Example: flags that are set by `atomicOr` again.
#pragma once
#include <cstdint>

#include "core/memory_access.h"

namespace vgpu {

// Values in the low `bytes` of each; false where it is not known what the operation makes.
bool is_silent(AtomicOperation operation, ValueType type, uint32_t bytes, uint64_t old, uint64_t operand, uint64_t expected);

}  // namespace vgpu
