// Loops that update memory by compare-and-swap, as programs write atomics that the hardware does not have:
//
//   LOOP: made = op(expected, operand); old = cas [at], expected, made; again = old != expected; expected = old; @again LOOP
//
// What it accepts: one way into the loop and one out of it, nothing in it that others see but the swap, the same place and
// operand in every try, and old values that go nowhere else.  Why that is sound: a try in vain changes nothing, one that
// succeeds changes memory by op, and what was expected at first is a guess for which any value would do.  Example: float
// maxima, `atomicMax` of a float by `atomicCAS`.
#pragma once
#include <string_view>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

// Sets `update` and its operand of each such swap, and that nobody uses its result, nor that of the loads of the first guess.
// names: of each instruction's statement, `max.f32`.
void mark_update_loops(DecodedFunction& function, const std::vector<std::string_view>& names);

}  // namespace vgpu
