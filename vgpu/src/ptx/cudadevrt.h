// Functions that NVIDIA's library of device functions would bring: a grid's barrier.  Written in PTX: they are interpreted
// like all else, under the same schedule.
#pragma once
#include <string>

namespace vgpu {

// The text, with the definitions that it needs from here.
std::string link_cudadevrt(std::string text);

}  // namespace vgpu
