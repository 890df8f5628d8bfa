// Recognizes calls by the memory management of PyTorch and TensorFlow.
#pragma once

namespace vgpu {

// Whether this code lies in a library in which a framework manages memory.  It asks whether work is complete only to use memory
// again, which can change addresses but no order of accesses.  A user's queries come from other libraries (libtorch_python.so).
bool is_framework_code(const void* address);

}  // namespace vgpu
