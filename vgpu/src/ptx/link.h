// Links several PTX modules into one.
#pragma once
#include <string>
#include <vector>

namespace vgpu::ptx {

// Returns one text with all definitions; names with internal linkage are made unique.  Throws Unsupported if a text is not PTX, or
// if two modules define the same visible name.
std::string link_modules(const std::vector<std::string>& texts);

}  // namespace vgpu::ptx
