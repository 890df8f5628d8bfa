// Log of unsupported calls and kernels, and of calls that CPU fallbacks have computed.
#pragma once
#include <string>

namespace vgpu {

// These log each name once, and print it to stderr then.
void note_unsupported(const std::string& name);
void note_fallback(const std::string& name);  // computed on the CPU instead of by the vendor library

}  // namespace vgpu
