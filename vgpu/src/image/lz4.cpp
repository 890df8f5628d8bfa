// Decompression of LZ4 blocks.
#include "lz4.h"

#include <algorithm>

#include "invalid_image.h"

namespace vgpu {

// A block is a sequence of literals and copies of previous output.
std::string unpack_lz4(std::string_view block, uint64_t size) {
  const uint8_t* next = reinterpret_cast<const uint8_t*>(block.data());
  const uint64_t packed = block.size();
  std::string output;
  output.reserve(std::min(size, packed * 255));
  const uint8_t* end = next + packed;
  auto length = [&](uint64_t n) {
    if (n != 15) return n;
    uint8_t extra;
    do {
      if (next >= end) throw InvalidImage("a damaged container: packed code ends too soon");
      n += extra = *next++;
    } while (extra == 255);
    return n;
  };
  while (next < end) {
    uint8_t token = *next++;
    uint64_t literals = length(token >> 4);
    if (literals > uint64_t(end - next) || output.size() + literals > size)
      throw InvalidImage("a damaged container: too many literals");
    output.append(reinterpret_cast<const char*>(next), literals);
    next += literals;
    if (next >= end) break;
    if (end - next < 2) throw InvalidImage("a damaged container: packed code ends too soon");
    uint64_t distance = uint64_t(next[0]) | uint64_t(next[1]) << 8;
    next += 2;
    uint64_t copies = length(token & 15) + 4;
    if (distance == 0 || distance > output.size() || output.size() + copies > size)
      throw InvalidImage("a damaged container: a copy of nothing");
    for (uint64_t k = 0; k < copies; k++) output.push_back(output[output.size() - distance]);
  }
  return output;
}

}  // namespace vgpu
