// Functions that machine code calls outside of its module: each has an address at which nothing lies.
#pragma once
#include <cstdint>
#include <string>

namespace vgpu {
struct WarpContext;
struct Instruction;
}  // namespace vgpu

namespace vgpu::sm80 {

uint64_t outside_address(const std::string& name);  // 0: no such function is known

// a: a pair of registers with the function's address; b: the first of the registers with its arguments, d: of its results.
void call_outside(WarpContext& warp, const Instruction& i);

}  // namespace vgpu::sm80
