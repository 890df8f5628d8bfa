// The layout is NVIDIA's, undocumented; public descriptions: the cuobjdump-like readers of several open projects.  Elements:
// a 64-byte header (kind, header size, size, packed size, architecture, flags, unpacked size), then the code.
#include "fatbin.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "error.h"

namespace vgpu {
namespace {

constexpr uint32_t kContainer = 0xba55ed50, kWrapper = 0x466243b1;
constexpr uint64_t kMostBytes = 1ull << 30;

template <class T> T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One LZ4 block (its format is public): literals, then copies of what came before.
std::string lz4(const uint8_t* from, uint64_t packed, uint64_t size) {
  std::string out;
  out.reserve(size);
  const uint8_t* end = from + packed;
  auto length = [&](uint64_t n) {
    if (n != 15) return n;
    uint8_t more;
    do {
      if (from >= end) throw Unsupported("a damaged container: packed code ends too soon");
      n += more = *from++;
    } while (more == 255);
    return n;
  };
  while (from < end) {
    uint8_t token = *from++;
    uint64_t literals = length(token >> 4);
    if (literals > uint64_t(end - from) || out.size() + literals > size) throw Unsupported("a damaged container: too many literals");
    out.append(reinterpret_cast<const char*>(from), literals);
    from += literals;
    if (from >= end) break;
    if (end - from < 2) throw Unsupported("a damaged container: packed code ends too soon");
    uint64_t back = read<uint16_t>(from);
    from += 2;
    uint64_t copies = length(token & 15) + 4;
    if (back == 0 || back > out.size() || out.size() + copies > size) throw Unsupported("a damaged container: a copy of nothing");
    for (uint64_t k = 0; k < copies; k++) out.push_back(out[out.size() - back]);
  }
  return out;
}

// Calls visit(element, is it PTX?, its architecture) for each.
template <class Visit> void elements(const uint8_t* at, const uint8_t* end, Visit visit) {
  while (end - at >= 64) {
    uint32_t header = read<uint32_t>(at + 4);
    uint64_t size = read<uint64_t>(at + 8);
    if (header < 64 || size > kMostBytes || header + size > uint64_t(end - at)) throw Unsupported("a damaged container");
    visit(at, read<uint16_t>(at) == 1, static_cast<int>(read<uint32_t>(at + 28)));
    at += header + size;
  }
}

Ptx element(const uint8_t* at, const uint8_t* end, int arch) {
  Ptx best;
  const uint8_t* chosen = nullptr;
  bool machine_code = false;
  elements(at, end, [&](const uint8_t* one, bool is_ptx, int of) {
    if (is_ptx && of <= arch && (!chosen || of > best.arch)) chosen = one, best.arch = of;
    machine_code |= !is_ptx;
  });
  if (!chosen) throw NoPtx(machine_code ? "machine code without PTX for this device" : "a container without PTX for this device");
  uint32_t header = read<uint32_t>(chosen + 4), packed = read<uint32_t>(chosen + 16);
  uint64_t size = read<uint64_t>(chosen + 8), unpacked = read<uint64_t>(chosen + 56);
  if (packed > size || unpacked > kMostBytes) throw Unsupported("a damaged container");
  best.text = packed ? lz4(chosen + header, packed, unpacked)
                     : std::string(reinterpret_cast<const char*>(chosen + header), size);
  return best;
}

}  // namespace

int newest_ptx(const void* image) {
  const uint8_t* at = static_cast<const uint8_t*>(image);
  if (!at) return 0;
  if (read<uint32_t>(at) == kWrapper) return newest_ptx(read<const void*>(at + 8));
  uint64_t size = read<uint64_t>(at + 8);
  if (read<uint32_t>(at) != kContainer || size > kMostBytes) return 0;
  int newest = 0;
  const uint8_t* first = at + read<uint16_t>(at + 6);
  try {
    elements(first, first + size, [&](const uint8_t*, bool is_ptx, int of) {
      if (is_ptx) newest = std::max(newest, of);
    });
  } catch (const Unsupported&) {  // told when something of it is used
  }
  return newest;
}

Ptx ptx_of(const void* image, int arch) {
  const uint8_t* at = static_cast<const uint8_t*>(image);
  if (!at) throw Unsupported("no image");
  uint32_t magic = read<uint32_t>(at);
  if (magic == kWrapper) return ptx_of(read<const void*>(at + 8), arch);
  Ptx found;
  if (magic == kContainer) {
    uint16_t header = read<uint16_t>(at + 6);
    uint64_t size = read<uint64_t>(at + 8);
    if (header < 16 || size > kMostBytes) throw Unsupported("a damaged container");
    found = element(at + header, at + header + size, arch);
  } else if (std::memcmp(at, "\x7f" "ELF", 4) == 0) {
    throw NoPtx("machine code without PTX (if it was assembled at run time: put this device's folder, with its ptxas, first in PATH)");
  } else {
    found.text = reinterpret_cast<const char*>(at);
  }
  size_t end = found.text.find('\0');
  if (end != std::string::npos) found.text.resize(end);
  if (found.text.find(".version") == std::string::npos) throw Unsupported("neither a container nor PTX");
  return found;
}

}  // namespace vgpu
