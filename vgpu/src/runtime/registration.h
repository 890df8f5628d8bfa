// Containers (fat binaries), kernels and variables that a program's libraries register with the runtime when they are loaded.
#pragma once
#include <string>

#include "driver/api.h"

namespace vgpu {

// Return nullptr if the host address was not registered, or the container cannot be loaded.
Kernel* kernel_for_symbol(const void* host);
std::string registered_name(const void* host);  // of a kernel, even if its container cannot be loaded
const ModuleVariable* variable_for_symbol(const void* host);

// Stores an error for cudaGetLastError(), and returns it.
int set_last_error(int error);

}  // namespace vgpu
