// The names of all PTX instructions, including those that this device does not support.
#pragma once
#include "module.h"

namespace vgpu::ptx {

// Throws InvalidPtx, with the line, if a function's body contains a name that is not a PTX instruction.
void check_instruction_names(const Module& module);

}  // namespace vgpu::ptx
