// Several modules as one, as a linker joins them.
#pragma once
#include <string>
#include <vector>

namespace vgpu::ptx {

// One text that defines what all define.  A name that only its own module sees stays apart from the others' of that name.
// Unsupported: one is no PTX, or two modules define what everybody sees.
std::string link_modules(const std::vector<std::string>& texts);

}  // namespace vgpu::ptx
