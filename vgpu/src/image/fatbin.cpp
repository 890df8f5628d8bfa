// The layout is NVIDIA's, undocumented; public descriptions: the cuobjdump-like readers of several open projects.  Elements:
// a 64-byte header (kind, header size, size, packed size, architecture, flags, unpacked size), then the code.
#include "fatbin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace vgpu {
namespace {

constexpr uint32_t kContainer = 0xba55ed50, kWrapper = 0x466243b1;
constexpr uint32_t kZstd = 0xfd2fb528;  // how what it packed begins; LZ4's blocks begin with no such word
constexpr uint64_t kMaxContainerBytes = 256ull << 20;
constexpr uint64_t kMaxHeaderBytes = 64 << 10;  // in which PTX names its target

// Memory that a caller points to, of which nobody says how long it is: what a damaged container says of its own size may
// lead anywhere, so it is read as a file, which fails where nothing lies.
class ProcessMemory {
 public:
  ProcessMemory() : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw Unsupported("/proc/self/mem cannot be read");
  }
  ~ProcessMemory() { close(file_); }
  ProcessMemory(const ProcessMemory&) = delete;

  std::string bytes(uint64_t at, uint64_t size) const {
    std::string all(size, 0);
    if (read_up_to(at, all.data(), size) != size) throw InvalidImage("a damaged container: it ends where no memory is");
    return all;
  }
  template <class T> T read(uint64_t at) const {
    T value;
    std::string raw = bytes(at, sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  // Up to a zero byte, `most` bytes or the end of the memory.
  std::string text(uint64_t at, uint64_t most) const {
    std::string all;
    while (all.size() < most) {
      char piece[4096];
      size_t got = read_up_to(at + all.size(), piece, std::min<uint64_t>(4096 - (at + all.size()) % 4096, most - all.size()));
      size_t length = strnlen(piece, got);
      all.append(piece, length);
      if (length < got || !got) break;
    }
    return all;
  }

 private:
  uint64_t read_up_to(uint64_t at, char* to, uint64_t size) const {
    uint64_t done = 0;
    while (done < size) {
      ssize_t got = pread64(file_, to + done, size - done, static_cast<off64_t>(at + done));
      if (got <= 0) break;
      done += static_cast<uint64_t>(got);
    }
    return done;
  }

  int file_;
};

template <class T> T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One LZ4 block (its format is public): literals, then copies of what came before.
std::string lz4(const uint8_t* from, uint64_t packed, uint64_t size) {
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
    uint64_t back = read<uint16_t>(from);
    from += 2;
    uint64_t copies = length(token & 15) + 4;
    if (back == 0 || back > out.size() || out.size() + copies > size)
      throw InvalidImage("a damaged container: a copy of nothing");
    for (uint64_t k = 0; k < copies; k++) out.push_back(out[out.size() - back]);
  }
  return out;
}

// Calls visit(element, is it PTX?, its architecture) for each.
template <class Visit> void elements(const ProcessMemory& image, uint64_t at, uint64_t end, Visit visit) {
  while (end - at >= 64) {
    uint32_t header = image.read<uint32_t>(at + 4);
    uint64_t size = image.read<uint64_t>(at + 8);
    if (header < 64 || size > kMaxContainerBytes || header + size > end - at) throw InvalidImage("a damaged container");
    visit(at, image.read<uint16_t>(at) == 1, static_cast<int>(image.read<uint32_t>(at + 28)));
    at += header + size;
  }
}

Ptx element(const ProcessMemory& image, uint64_t at, uint64_t end, int arch) {
  Ptx best;
  uint64_t chosen = 0;
  bool machine_code = false;
  elements(image, at, end, [&](uint64_t one, bool is_ptx, int of) {
    if (is_ptx && of <= arch && (!chosen || of > best.arch)) chosen = one, best.arch = of;
    machine_code |= !is_ptx;
  });
  if (!chosen)
    throw NoPtx(machine_code ? "machine code without PTX for this device" : "a container without PTX for this device");
  uint32_t header = image.read<uint32_t>(chosen + 4), packed = image.read<uint32_t>(chosen + 16);
  uint64_t size = image.read<uint64_t>(chosen + 8), unpacked = image.read<uint64_t>(chosen + 56);
  if (packed > size || unpacked > kMaxContainerBytes) throw InvalidImage("a damaged container");
  std::string code = image.bytes(chosen + header, packed ? packed : size);
  if (packed && code.size() >= 4 && read<uint32_t>(reinterpret_cast<const uint8_t*>(code.data())) == kZstd)
    throw Unsupported(
        "a container that is compressed with zstd, which this device does not unpack: build it with "
        "nvcc -compress-mode=speed or =none");
  best.text = packed ? lz4(reinterpret_cast<const uint8_t*>(code.data()), packed, unpacked) : std::move(code);
  return best;
}

// What `.target` names: 90 and 'a' for sm_90a, whose instructions other devices do not have ('f': those of its family have).
struct Target {
  int arch = 0;
  char only = 0;
  bool runs_on(int device) const {
    if (only == 'a') return device == arch;
    return device >= arch && (only != 'f' || device / 10 == arch / 10);
  }
};
Target target_in(const std::string& text) {
  Target found;
  for (size_t at = text.find(".target"); at != std::string::npos; at = text.find(".target", at + 1)) {
    const size_t line = text.find_last_of("\n;", at);
    if (text.find_first_not_of(" \t\r", line == std::string::npos ? 0 : line + 1) != at) continue;  // in a comment
    const std::string rest = text.substr(at, text.find('\n', at) - at);
    std::sscanf(rest.c_str(), ".target%*[ \t]sm_%4d%c", &found.arch, &found.only);
    if (found.only != 'a' && found.only != 'f') found.only = 0;
    break;
  }
  return found;
}

}  // namespace

int target_arch(const void* at) {
  const std::string start = at ? ProcessMemory().text(reinterpret_cast<uint64_t>(at), kMaxHeaderBytes) : "";
  const Target target = target_in(start);
  return target.arch;
}

int newest_ptx_arch(const void* at) {
  if (!at) return 0;
  int newest = 0;
  try {
    ProcessMemory image;
    uint64_t begin = reinterpret_cast<uint64_t>(at);
    if (image.read<uint32_t>(begin) == kWrapper) begin = image.read<uint64_t>(begin + 8);
    uint64_t size = image.read<uint64_t>(begin + 8), first = begin + image.read<uint16_t>(begin + 6);
    if (image.read<uint32_t>(begin) != kContainer || size > kMaxContainerBytes) return 0;
    elements(image, first, first + size, [&](uint64_t, bool is_ptx, int of) {
      if (is_ptx) newest = std::max(newest, of);
    });
  } catch (const Unsupported&) {  // NOLINT(bugprone-empty-catch): told when something of it is used
  }
  return newest;
}

Ptx select_ptx(const void* at, int arch) {
  if (!at) throw InvalidImage("no image");
  ProcessMemory image;
  uint64_t begin = reinterpret_cast<uint64_t>(at);
  std::string start = image.text(begin, 4);
  uint32_t magic = start.size() == 4 ? image.read<uint32_t>(begin) : 0;
  if (magic == kWrapper) {
    uint64_t held = image.read<uint64_t>(begin + 8);
    if (image.read<uint32_t>(held) == kWrapper) throw InvalidImage("a damaged container: a wrapper in a wrapper");
    return select_ptx(reinterpret_cast<const void*>(held), arch);
  }
  Ptx found;
  if (magic == kContainer) {
    uint16_t header = image.read<uint16_t>(begin + 6);
    uint64_t size = image.read<uint64_t>(begin + 8);
    if (header < 16 || size > kMaxContainerBytes) throw InvalidImage("a damaged container");
    found = element(image, begin + header, begin + header + size, arch);
  } else if (start ==
             "\x7f"
             "ELF") {
    throw NoPtx(
        "machine code without PTX (if it was assembled at run time: put this device's folder, with its ptxas, first in PATH)");
  } else {
    found.text = image.text(begin, kMaxContainerBytes);
  }
  size_t end = found.text.find('\0');
  if (end != std::string::npos) found.text.resize(end);
  if (found.text.find(".version") == std::string::npos) throw InvalidImage("neither a container nor PTX");
  const Target target = target_in(found.text);
  if (!target.runs_on(arch))
    throw Unsupported("PTX for sm_" + std::to_string(target.arch) + (target.only ? std::string(1, target.only) : "") +
                      ", and the device is sm_" + std::to_string(arch) + " (VGPU_COMPUTE_CAPABILITY sets another)");
  return found;
}

}  // namespace vgpu
