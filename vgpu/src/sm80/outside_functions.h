// Functions outside of a module that machine code calls, such as vprintf; their addresses do not point to memory.
#pragma once
#include <cstdint>
#include <string>

namespace vgpu {
struct WarpContext;
struct Instruction;
}  // namespace vgpu

namespace vgpu::sm80 {

uint64_t outside_address(const std::string& name);  // 0: not supported

// Calls a function.  i.a: a pair of registers with its address; i.b, i.d: the first registers of its arguments and results.
void call_outside(WarpContext& warp, const Instruction& i);

}  // namespace vgpu::sm80
