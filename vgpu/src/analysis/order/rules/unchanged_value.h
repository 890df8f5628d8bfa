// Rule 2, unchanged value (`same_value` in reports): reads, and writes of the value that is there.
//
// What it accepts: any number of these, by any threads, including atomics that change nothing.  Why that is
// sound: all of the phase before is over when they begin, so the value is the same in every schedule, and none of them changes
// it: each reads it, and each would write it again.  The location must be initialized: uninitialized memory is zero here, but
// has any value on hardware.  Example: every block stores 0 to a flag that is 0.
#pragma once
#include "../phase.h"

namespace vgpu {

inline bool joins_unchanged_value(const LaneAccess& access) {
  return access.kind == PhaseKind::UnchangedValue || access.silent;
}

}  // namespace vgpu
