// Compare-and-swap loops, by which programs implement atomics that the hardware does not have, and which analyses take for one
// atomic:
//
//   LOOP: new = op(expected, operand); old = cas [address], expected, new; failed = old != expected; expected = old; @failed LOOP
//
// What is accepted: one entry and one exit of the loop, no operation in it but the swap that other threads can see, the same
// address and operand in every iteration, and old values that are not used elsewhere.  Why that is sound: a failed iteration
// changes nothing, a successful one changes memory by op, and the first expected value is a guess that may have any value.
// Example: float maxima, `atomicMax` of a float by `atomicCAS`.
#pragma once
#include <string_view>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

// Sets Instruction::update and its operand of each such swap, and result_unused of the swap and of the loads of the first guess.
// names: the name of each instruction's statement, such as `max.f32`.
void mark_update_loops(DecodedFunction& function, const std::vector<std::string_view>& names);

}  // namespace vgpu
