// What can go wrong, in words that reach the user through the framework's own error.
#pragma once
#include <stdexcept>
#include <string>

namespace vgpu {

// The code, or the image that should hold it, is not what this device reads.
struct Unsupported : std::runtime_error { using std::runtime_error::runtime_error; };

// What a launch needs is more than the device has.
struct OutOfResources : std::runtime_error { using std::runtime_error::runtime_error; };

}  // namespace vgpu
