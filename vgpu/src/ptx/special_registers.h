// PTX's names of special registers.
#pragma once
#include <string_view>

namespace vgpu {

// The number of core's special register (core/special_registers.h); -1 for what is none, or none that a frame holds.
int special_register_of(std::string_view name);

}  // namespace vgpu
