// The answer to a call of a closed library, by its name: handles and descriptors are made, settings are taken, sizes and results
// are refused.  Frameworks end the process where the first two fail.
#pragma once

namespace vgpu {

// `first` is the call's first argument: where a handle goes that it creates.
int answer(const char* call, void** first);

}  // namespace vgpu
