// What an installed NVRTC needs to compile in this process.
#pragma once

namespace vgpu {

void load_nvrtc_builtins();

}  // namespace vgpu
