// Exceptions whose messages reach the user as errors of the framework.
#pragma once
#include <stdexcept>
#include <string>

namespace vgpu {

// The device does not support the code, or the image that contains it.
struct Unsupported : std::runtime_error { using std::runtime_error::runtime_error; };

// A launch needs more resources than the device has.
struct OutOfResources : std::runtime_error { using std::runtime_error::runtime_error; };

}  // namespace vgpu
