// Names of the reasons that end a proof.
#include "unproved_reason.h"

namespace vgpu {

const char* reason_name(UnprovedReason reason) {
  switch (reason) {
    case UnprovedReason::Race: return "race";
    case UnprovedReason::MemoryOrder: return "memory_order";
    case UnprovedReason::OldValue: return "old_value";
    case UnprovedReason::Rounding: return "rounding";
    case UnprovedReason::HalfSum: return "half_sum";
    case UnprovedReason::Scope: return "scope";
    case UnprovedReason::Uninitialized: return "uninitialized";
    case UnprovedReason::UninitializedCopy: return "uninitialized_copy";
    case UnprovedReason::AllocationOrder: return "allocation_order";
    case UnprovedReason::StaleRead: return "stale_read";
    case UnprovedReason::Fault: return "fault";
    case UnprovedReason::CheckMemoryFull: return "check_memory";
    case UnprovedReason::NotAnalyzable: return "instruction_set";
  }
  return "source";
}

const char* source_name(ScheduleSource source) {
  switch (source) {
    case ScheduleSource::Clock: return "clock";
    case ScheduleSource::Processor: return "processor";
    case ScheduleSource::ActiveLanes: return "active_lanes";
    case ScheduleSource::InactiveLane: return "inactive_lane";
    case ScheduleSource::PartialBarrierVote: return "partial_vote";
    case ScheduleSource::Heap: return "heap";
    case ScheduleSource::Print: return "output";
    case ScheduleSource::DependentLaunch: return "dependent_launch";
    case ScheduleSource::StaleRead: return "stale_read";
    case ScheduleSource::AsynchronousCopy: return "asynchronous_copy";
    case ScheduleSource::None: break;
  }
  return "none";
}

}  // namespace vgpu
