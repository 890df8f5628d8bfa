// Log of the calls and kernels that a program asked for and the device does not support, for programs that got an error.
#pragma once
#include <string>

namespace vgpu {

// Each name is logged once, and printed to stderr then.
void note_unsupported(const std::string& what);
void note_fallback(const std::string& what);  // computed on the CPU instead of by the vendor library

}  // namespace vgpu
