// Blocks of LZ4, as nvcc packed containers before CUDA 12.9.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu {

// One block, unpacked, of at most `size` bytes; InvalidImage: it is damaged.
std::string unpack_lz4(std::string_view block, uint64_t size);

}  // namespace vgpu
