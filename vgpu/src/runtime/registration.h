// What a program's own libraries tell the runtime at their start: containers, kernels and variables, by host addresses.
#pragma once
#include <string>

#include "driver/api.h"

namespace vgpu {

// nullptr, with the reason in the device's last fault, where nothing of that address was registered or it cannot be loaded.
Kernel* kernel_for_symbol(const void* host);
const ModuleVariable* variable_for_symbol(const void* host);

// The runtime remembers an error until somebody asks (cudaGetLastError).
int set_last_error(int error);

}  // namespace vgpu
