// All instructions of PTX, whether this device knows them or not.
#pragma once
#include "module.h"

namespace vgpu::ptx {

// InvalidPtx, with the line, where a function's body holds what is no instruction of PTX.
void check_instruction_names(const Module& module);

}  // namespace vgpu::ptx
