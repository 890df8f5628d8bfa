// Why a launch is not proved.
#pragma once
#include <cstdint>

#include "core/instruction_set.h"

namespace vgpu {

enum class Reason : uint8_t {
  Race,         // two accesses, one of them a write, that nothing orders
  MemoryOrder,  // atomic or ordered ones that do not commute: flags, tickets, look-back
  OldValue,     // an atomic's old value is used, or the success of a compare-and-swap decides
  Rounding,     // a sum of floats that is not exact
  Uninitialized,
  StaleRead,
  Source,     // what a schedule decides: see ScheduleSource
  Fault,
  Capacity,   // the check's own memory is full
  InstructionSet,  // its instructions do not say what a proof needs
};

const char* reason_name(Reason reason);
const char* source_name(ScheduleSource source);

}  // namespace vgpu
