// Functions that the device provides and modules only declare: vprintf, malloc and the like.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

// Decodes a call; arguments and results are offsets into the scratch space.  Returns false if `name` is not such a function.
bool decode_system_call(const std::string& name, const std::vector<uint32_t>& arguments, const std::vector<uint32_t>& results,
                        Instruction& i);

}  // namespace vgpu
