// What was asked of the device and is not on it, by name: a library's call, a kernel.  Whoever got an error may ask which.
#pragma once
#include <string>

namespace vgpu {

// Noted once, and said on the first occasion.
void note_refused(const std::string& what);
void note_stood_in(const std::string& what);  // computed, but not by what the program asked

}  // namespace vgpu
