// Names of the reasons that end a proof.
#include "reason.h"

namespace vgpu {

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::Race: return "race";
    case Reason::MemoryOrder: return "memory_order";
    case Reason::OldValue: return "old_value";
    case Reason::Rounding: return "rounding";
    case Reason::Uninitialized: return "uninitialized";
    case Reason::UninitializedCopy: return "uninitialized_copy";
    case Reason::StaleRead: return "stale_read";
    case Reason::Fault: return "fault";
    case Reason::Capacity: return "check_memory";
    case Reason::InstructionSet: return "instruction_set";
    case Reason::Source: break;
  }
  return "source";
}

const char* source_name(ScheduleSource source) {
  switch (source) {
    case ScheduleSource::Clock: return "clock";
    case ScheduleSource::Processor: return "processor";
    case ScheduleSource::ActiveLanes: return "active_lanes";
    case ScheduleSource::InactiveLane: return "inactive_lane";
    case ScheduleSource::PartialVote: return "partial_vote";
    case ScheduleSource::Heap: return "heap";
    case ScheduleSource::Output: return "output";
    case ScheduleSource::DependentLaunch: return "dependent_launch";
    case ScheduleSource::StaleRead: return "stale_read";
    case ScheduleSource::AsynchronousCopy: return "asynchronous_copy";
    case ScheduleSource::None: break;
  }
  return "none";
}

}  // namespace vgpu
