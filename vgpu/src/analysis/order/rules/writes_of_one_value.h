// Rule 3, writes of one value over another value (`one_value` in reports).
//
// What it accepts: writes that find the value already there, of a phase whose first write has stored it; and reads by a lane
// that has itself written in this phase.  Why that is sound: whichever write comes first stores the value, all others store it
// again, and a lane that has written reads what all write.  A read by another lane could come before all writes.  Example:
// thread 0 of each warp stores the block's maximum, which all have computed.
#pragma once
#include "../phase.h"

namespace vgpu {

inline bool joins_writes_of_one_value(const Phase& phase, const Accessor& now, const LaneAccess& access) {
  if (access.kind == PhaseKind::WritesOfOneValue) return access.silent;
  const bool own = phase.current.is_of(now) && phase.current.pattern == now.pattern && (phase.current.lanes >> now.lane & 1);
  return access.kind == PhaseKind::UnchangedValue && own;
}

}  // namespace vgpu
