// Rule 2, the same value: reads, and writes of the value that is there.
//
// What it accepts: any number of them, by any threads, in any order, atomics that change nothing among them.  Why that is
// sound: all of the phase before is over when they begin, so the value is the same in every schedule, and none of them changes
// it: each reads it, and each would write it again.  The place has to have been written before: what is zero here may be
// anything on a card.  Example: every block stores 0 to a flag that is 0.
#pragma once
#include "../phase.h"

namespace vgpu {

inline bool joins_same_value(const PlaceAccess& access) { return access.kind == PhaseKind::Same || access.silent; }

}  // namespace vgpu
