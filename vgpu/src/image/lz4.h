// Decompression of LZ4 blocks, which nvcc used in containers before CUDA 12.9.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu {

// Decompresses a block to at most `size` bytes; throws InvalidImage if it is damaged.
std::string unpack_lz4(std::string_view block, uint64_t size);

}  // namespace vgpu
