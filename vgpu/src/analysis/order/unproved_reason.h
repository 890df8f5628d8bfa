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
  Uninitialized,
  UninitializedCopy,  // the host receives bytes that nothing has written
  StaleRead,
  ScheduleDecidedValue,  // a value that the schedule decides (ScheduleSource)
  Fault,
  CheckMemoryFull,       // the memory of the check itself is full
  NotAnalyzable,  // the code lacks the fields for analyses (DecodedFunction::is_provable)
};

const char* reason_name(UnprovedReason reason);
const char* source_name(ScheduleSource source);

}  // namespace vgpu
