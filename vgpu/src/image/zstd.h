// Zstandard frames (RFC 8878), as nvcc packs machine code and PTX by default since CUDA 12.9.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu {

constexpr uint32_t kZstdMagic = 0xfd2fb528;

// The unpacked frame; InvalidImage: it is damaged, needs a dictionary, or is longer than `most` bytes.
std::string unpack_zstd(std::string_view packed, uint64_t most);

}  // namespace vgpu
