// Functions that a module declares and nobody defines, because they are a device's own: vprintf, malloc and the like.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

// A call of one, with its arguments and results as pieces of the scratch space; false: `name` is none of them.
bool decode_system_call(const std::string& name, const std::vector<uint32_t>& arguments, const std::vector<uint32_t>& results,
                        Instruction& i);

}  // namespace vgpu
