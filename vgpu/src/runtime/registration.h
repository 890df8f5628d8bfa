// Containers (fat binaries), kernels and variables that a program's libraries register with the runtime when they are loaded.
#pragma once
#include <string>

#include "driver/api.h"

namespace vgpu {

// Return nullptr if the host address was not registered, or the container cannot be loaded.
Kernel* kernel_for_symbol(const void* host);
// Finds the kernel of a launch; an error ends VGPU_CHECK=order's proof.
int find_launched_kernel(Kernel*& kernel, const void* host);
const ModuleVariable* variable_for_symbol(const void* host);

// Stores an error for cudaGetLastError(), and returns it.
int set_last_error(int error);

}  // namespace vgpu
