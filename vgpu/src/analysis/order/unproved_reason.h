// The reasons why a launch is not proved to be schedule-independent.
#pragma once
#include <cstdint>

#include "core/instruction_set.h"

namespace vgpu {

enum class UnprovedReason : uint8_t {
  Race,         // two unordered accesses, at least one of them a write
  MemoryOrder,  // atomic or ordered accesses that do not commute: flags, tickets, look-back
  OldValue,     // an atomic's old value is used, or the success of a compare-and-swap decides
  Rounding,     // a float sum that is not exact
  HalfSum,      // a sum of 16-bit floats, of which the check does not know whether it is exact
  Scope,        // an atomic that is atomic only for its block, and an access of another block
  Uninitialized,
  UninitializedCopy,  // the host receives bytes that nothing has written
  AllocationOrder,  // an access of memory whose allocation in a stream is not before it
  StaleRead,  // a read by a non-coherent cache (ld.global.nc) of memory that the same launch has written
  Fault,  // the launch failed
  CheckMemoryFull,       // the memory of the check itself is full
  NotAnalyzable,  // the code lacks the fields for analyses (DecodedFunction::is_provable)
};

const char* reason_name(UnprovedReason reason);
const char* source_name(ScheduleSource source);

}  // namespace vgpu
