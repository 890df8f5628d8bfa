// Support for an installed NVRTC (CUDA's run-time compiler) in this process.
#pragma once

namespace vgpu {

void load_nvrtc_builtins();  // does nothing if NVRTC is not installed

}  // namespace vgpu
