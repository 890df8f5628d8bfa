// Functions of NVIDIA's device library (cudadevrt): the grid barrier of cooperative groups.  They are written in PTX, so that they
// run under the schedule like other code.
#pragma once
#include <string>

namespace vgpu {

// Returns the text with the definitions of the functions that it needs.
std::string link_cudadevrt(std::string text);

}  // namespace vgpu
