// The layout is NVIDIA's, undocumented; public descriptions: the cuobjdump-like readers of several open projects.  Elements:
// a 64-byte header (kind, header size, size, packed size, architecture, flags, unpacked size), then the code.
#include "fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cubin.h"
#include "lz4.h"
#include "process_memory.h"
#include "zstd.h"

namespace vgpu {
namespace {

constexpr uint32_t kContainer = 0xba55ed50, kWrapper = 0x466243b1;
constexpr uint64_t kMaxContainerBytes = 256ull << 20;
constexpr uint64_t kMaxHeaderBytes = 64 << 10;  // in which PTX names its target

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

// The code of the element that begins there, unpacked.
std::string read_element(const ProcessMemory& image, uint64_t at) {
  const uint32_t header = image.read<uint32_t>(at + 4), packed = image.read<uint32_t>(at + 16);
  const uint64_t size = image.read<uint64_t>(at + 8), unpacked = image.read<uint64_t>(at + 56);
  if (packed > size || unpacked > kMaxContainerBytes) throw InvalidImage("a damaged container");
  std::string code = image.bytes(at + header, packed ? packed : size);
  if (!packed) return code;
  uint32_t start = 0;
  if (code.size() >= sizeof start) std::memcpy(&start, code.data(), sizeof start);
  return start == kZstdMagic ? unpack_zstd(code, unpacked) : unpack_lz4(code, unpacked);  // LZ4 begins with no such word
}

GpuCode select_element(const ProcessMemory& image, uint64_t at, uint64_t end, const CodeRequest& wanted) {
  uint64_t ptx = 0, machine_code = 0;
  int newest = 0;
  bool has_machine_code = false;
  elements(image, at, end, [&](uint64_t one, bool is_ptx, int of) {
    if (is_ptx && of <= wanted.arch && (!ptx || of > newest)) ptx = one, newest = of;
    if (!is_ptx && of == wanted.machine_arch) machine_code = one;
    has_machine_code |= !is_ptx;
  });
  if (machine_code && (wanted.prefers_machine_code || !ptx))
    return {CodeKind::MachineCode, read_element(image, machine_code), wanted.machine_arch};
  if (ptx) return {CodeKind::Ptx, read_element(image, ptx), newest};
  throw NoPtx(has_machine_code ? "machine code without PTX for this device" : "a container without PTX for this device");
}

bool is_elf(const std::string& start) { return start == ELFMAG; }

// Machine code by itself: it ends with the last of its headers.
GpuCode read_elf(const ProcessMemory& image, uint64_t at, int machine_arch) {
  const auto head = image.read<Elf64_Ehdr>(at);
  uint64_t end = head.e_shoff + uint64_t(head.e_shnum) * sizeof(Elf64_Shdr);
  if (head.e_phnum) end = std::max(end, head.e_phoff + uint64_t(head.e_phnum) * sizeof(Elf64_Phdr));
  if (head.e_shoff > kMaxContainerBytes || end > kMaxContainerBytes || !head.e_shnum || machine_arch == 0)
    throw NoPtx(
        "machine code without PTX (if it was assembled at run time: put this device's folder, with its ptxas, first in PATH)");
  return {CodeKind::MachineCode, image.bytes(at, end), machine_arch};
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

// Cuts the text at its end.
void check_ptx(std::string& text, int arch) {
  const size_t end = text.find('\0');
  if (end != std::string::npos) text.resize(end);
  if (text.find(".version") == std::string::npos) throw InvalidImage("neither a container nor PTX");
  const Target target = target_in(text);
  if (!target.runs_on(arch))
    throw Unsupported("PTX for sm_" + std::to_string(target.arch) + (target.only ? std::string(1, target.only) : "") +
                      ", and the device is sm_" + std::to_string(arch) + " (VGPU_COMPUTE_CAPABILITY sets another)");
}

}  // namespace

int target_arch(const void* at) {
  const std::string start = at ? ProcessMemory().text(reinterpret_cast<uint64_t>(at), kMaxHeaderBytes) : "";
  const Target target = target_in(start);
  return target.arch;
}

int newest_code_arch(const void* at, int machine_arch) {
  if (!at) return 0;
  int newest = 0;
  bool has_machine_code = false;
  try {
    ProcessMemory image;
    uint64_t begin = reinterpret_cast<uint64_t>(at);
    if (image.read<uint32_t>(begin) == kWrapper) begin = image.read<uint64_t>(begin + 8);
    if (is_elf(image.text(begin, 4)))
      return static_cast<int>(arch_of_elf(image.read<Elf64_Ehdr>(begin))) == machine_arch ? machine_arch : 0;
    uint64_t size = image.read<uint64_t>(begin + 8), first = begin + image.read<uint16_t>(begin + 6);
    if (image.read<uint32_t>(begin) != kContainer || size > kMaxContainerBytes) return 0;
    elements(image, first, first + size, [&](uint64_t, bool is_ptx, int of) {
      if (is_ptx) newest = std::max(newest, of);
      else has_machine_code |= of == machine_arch;
    });
  } catch (const Unsupported&) {  // NOLINT(bugprone-empty-catch): told when something of it is used
  }
  return newest || !has_machine_code ? newest : machine_arch;
}

GpuCode select_code(const void* at, const CodeRequest& wanted) {
  if (!at) throw InvalidImage("no image");
  ProcessMemory image;
  uint64_t begin = reinterpret_cast<uint64_t>(at);
  std::string start = image.text(begin, 4);
  uint32_t magic = start.size() == 4 ? image.read<uint32_t>(begin) : 0;
  if (magic == kWrapper) {
    uint64_t held = image.read<uint64_t>(begin + 8);
    if (image.read<uint32_t>(held) == kWrapper) throw InvalidImage("a damaged container: a wrapper in a wrapper");
    return select_code(reinterpret_cast<const void*>(held), wanted);
  }
  GpuCode found{CodeKind::Ptx, "", 0};
  if (magic == kContainer) {
    uint16_t header = image.read<uint16_t>(begin + 6);
    uint64_t size = image.read<uint64_t>(begin + 8);
    if (header < 16 || size > kMaxContainerBytes) throw InvalidImage("a damaged container");
    found = select_element(image, begin + header, begin + header + size, wanted);
  } else if (is_elf(start)) {
    found = read_elf(image, begin, wanted.machine_arch);
  } else {
    found.bytes = image.text(begin, kMaxContainerBytes);
  }
  if (found.kind == CodeKind::Ptx) check_ptx(found.bytes, wanted.arch);
  return found;
}

GpuCode select_ptx(const void* image, int arch) { return select_code(image, {arch, 0, false}); }

}  // namespace vgpu
