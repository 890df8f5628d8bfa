// Rule 2, the same value: reads, and writes of the current value.
//
// What it accepts: any number of these, by any threads, including atomics that change nothing.  Why that is
// sound: all of the phase before is over when they begin, so the value is the same in every schedule, and none of them changes
// it: each reads it, and each would write it again.  The location must be initialized: uninitialized memory is zero here, but
// has any value on hardware.  Example: every block stores 0 to a flag that is 0.
#pragma once
#include "../phase.h"

namespace vgpu {

inline bool joins_same_value(const LaneAccess& access) { return access.kind == PhaseKind::Same || access.silent; }

}  // namespace vgpu
