// Decompression of Zstandard frames (RFC 8878), which nvcc uses by default since CUDA 12.9.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu {

constexpr uint32_t kZstdMagic = 0xfd2fb528;

// Decompresses a frame; throws InvalidImage if it is damaged, needs a dictionary, or exceeds `max_bytes`.
std::string unpack_zstd(std::string_view packed, uint64_t max_bytes);

}  // namespace vgpu
