// Which PTX version and which architecture a statement needs at the least, as ptxas holds it.
#pragma once
#include <string>

#include "decoder.h"

namespace vgpu {

// What is missing of a text of this version (86 of 8.6) for this target (90 of sm_90); empty: nothing.
std::string required_beyond(const Statement& s, uint32_t version, uint32_t target);

}  // namespace vgpu
