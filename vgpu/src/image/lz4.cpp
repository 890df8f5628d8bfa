// Unpacks a block of LZ4.
#include "lz4.h"

#include <algorithm>

#include "invalid_image.h"

namespace vgpu {

// One LZ4 block (its format is public): literals, then copies of what came before.
std::string unpack_lz4(std::string_view block, uint64_t size) {
  const uint8_t* from = reinterpret_cast<const uint8_t*>(block.data());
  const uint64_t packed = block.size();
  std::string out;
  out.reserve(std::min(size, packed * 255));
  const uint8_t* end = from + packed;
  auto length = [&](uint64_t n) {
    if (n != 15) return n;
    uint8_t more;
    do {
      if (from >= end) throw InvalidImage("a damaged container: packed code ends too soon");
      n += more = *from++;
    } while (more == 255);
    return n;
  };
  while (from < end) {
    uint8_t token = *from++;
    uint64_t literals = length(token >> 4);
    if (literals > uint64_t(end - from) || out.size() + literals > size)
      throw InvalidImage("a damaged container: too many literals");
    out.append(reinterpret_cast<const char*>(from), literals);
    from += literals;
    if (from >= end) break;
    if (end - from < 2) throw InvalidImage("a damaged container: packed code ends too soon");
    uint64_t back = uint64_t(from[0]) | uint64_t(from[1]) << 8;
    from += 2;
    uint64_t copies = length(token & 15) + 4;
    if (back == 0 || back > out.size() || out.size() + copies > size)
      throw InvalidImage("a damaged container: a copy of nothing");
    for (uint64_t k = 0; k < copies; k++) out.push_back(out[out.size() - back]);
  }
  return out;
}

}  // namespace vgpu
