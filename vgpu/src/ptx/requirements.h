// The minimum PTX version and architecture of statements, as ptxas checks them.
#pragma once
#include <string>

#include "decoder.h"

namespace vgpu {

// Returns what a statement requires beyond this version (86 for 8.6) and target (90 for sm_90); empty: nothing.
std::string required_beyond(const Statement& s, uint32_t version, uint32_t target);

}  // namespace vgpu
