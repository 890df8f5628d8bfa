// Reads containers of GPU code.  Their format is not documented, but several open projects describe it: each element has a 64-byte
// header (kind, header size, size, packed size, architecture, flags, unpacked size), then the code.
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

// First words of a container, with the sizes of its header and elements at bytes 6 and 8, and of a wrapper that points to one.
constexpr uint32_t kContainer = 0xba55ed50, kWrapper = 0x466243b1;
constexpr uint64_t kMaxContainerBytes = 256ull << 20;
constexpr uint64_t kMaxHeaderBytes = 64 << 10;  // of PTX, searched for its .target

// Calls visit(address, whether it is PTX, architecture) for each element.
template <class Visit> void for_each_element(const ProcessMemory& image, uint64_t position, uint64_t end, Visit visit) {
  while (end - position >= 64) {
    uint32_t header = image.read<uint32_t>(position + 4);
    uint64_t size = image.read<uint64_t>(position + 8);
    if (header < 64 || size > kMaxContainerBytes || header + size > end - position) throw InvalidImage("a damaged container");
    visit(position, image.read<uint16_t>(position) == 1, static_cast<int>(image.read<uint32_t>(position + 28)));
    position += header + size;
  }
}

// Reads the code of an element and decompresses it.
std::string read_element(const ProcessMemory& image, uint64_t position) {
  const uint32_t header = image.read<uint32_t>(position + 4), packed = image.read<uint32_t>(position + 16);
  const uint64_t size = image.read<uint64_t>(position + 8), unpacked = image.read<uint64_t>(position + 56);
  if (packed > size || unpacked > kMaxContainerBytes) throw InvalidImage("a damaged container");
  std::string code = image.bytes(position + header, packed ? packed : size);
  if (!packed) return code;
  uint32_t start = 0;
  if (code.size() >= sizeof start) std::memcpy(&start, code.data(), sizeof start);
  return start == kZstdMagic ? unpack_zstd(code, unpacked)
                             : unpack_lz4(code, unpacked);  // LZ4 data does not begin with that word
}

GpuCode select_element(const ProcessMemory& image, uint64_t begin, uint64_t end, const CodeRequest& request) {
  uint64_t ptx = 0, machine_code = 0;
  int newest = 0;
  bool has_machine_code = false;
  for_each_element(image, begin, end, [&](uint64_t element, bool is_ptx, int arch) {
    if (is_ptx && arch <= request.arch && (!ptx || arch > newest)) ptx = element, newest = arch;
    if (!is_ptx && arch == request.machine_arch) machine_code = element;
    has_machine_code |= !is_ptx;
  });
  if (machine_code && (request.prefers_machine_code || !ptx))
    return {CodeKind::MachineCode, read_element(image, machine_code), request.machine_arch};
  if (ptx) return {CodeKind::Ptx, read_element(image, ptx), newest};
  throw NoSuitableCode(has_machine_code ? "machine code without PTX for this device"
                                        : "a container without PTX for this device");
}

bool is_elf(const std::string& start) { return start == ELFMAG; }

// Reads plain machine code, whose end is that of its section or program headers.
GpuCode read_elf(const ProcessMemory& image, uint64_t begin, int machine_arch) {
  const auto head = image.read<Elf64_Ehdr>(begin);
  uint64_t end = head.e_shoff + uint64_t(head.e_shnum) * sizeof(Elf64_Shdr);
  if (head.e_phnum) end = std::max(end, head.e_phoff + uint64_t(head.e_phnum) * sizeof(Elf64_Phdr));
  if (head.e_shoff > kMaxContainerBytes || end > kMaxContainerBytes || !head.e_shnum || machine_arch == 0)
    throw NoSuitableCode(
        "machine code without PTX (if it was assembled at run time: put this device's folder, with its ptxas, first in PATH)");
  return {CodeKind::MachineCode, image.bytes(begin, end), machine_arch};
}

// The value of `.target`: 90 and 'a' for sm_90a, which runs only on that device; with 'f' it runs on its family.
struct Target {
  int arch = 0;
  char suffix = 0;
  bool runs_on(int device) const {
    if (suffix == 'a') return device == arch;
    return device >= arch && (suffix != 'f' || device / 10 == arch / 10);
  }
};
Target target_in(const std::string& text) {
  Target target;
  for (size_t position = text.find(".target"); position != std::string::npos; position = text.find(".target", position + 1)) {
    const size_t line = text.find_last_of("\n;", position);
    if (text.find_first_not_of(" \t\r", line == std::string::npos ? 0 : line + 1) != position) continue;  // in a comment
    const std::string directive = text.substr(position, text.find('\n', position) - position);
    std::sscanf(directive.c_str(), ".target%*[ \t]sm_%4d%c", &target.arch, &target.suffix);
    if (target.suffix != 'a' && target.suffix != 'f') target.suffix = 0;
    break;
  }
  return target;
}

// Truncates the text at its zero byte, and checks that it is PTX for this device.
void check_ptx(std::string& text, int arch) {
  const size_t end = text.find('\0');
  if (end != std::string::npos) text.resize(end);
  if (text.find(".version") == std::string::npos) throw InvalidImage("neither a container nor PTX");
  const Target target = target_in(text);
  if (!target.runs_on(arch))
    throw Unsupported("PTX for sm_" + std::to_string(target.arch) + (target.suffix ? std::string(1, target.suffix) : "") +
                      ", and the device is sm_" + std::to_string(arch) + " (VGPU_COMPUTE_CAPABILITY sets another)");
}

}  // namespace

int target_arch(const void* image) {
  const std::string start = image ? ProcessMemory().text(reinterpret_cast<uint64_t>(image), kMaxHeaderBytes) : "";
  const Target target = target_in(start);
  return target.arch;
}

int newest_code_arch(const void* address, int machine_arch) {
  if (!address) return 0;
  int newest = 0;
  bool has_machine_code = false;
  try {
    ProcessMemory image;
    uint64_t begin = reinterpret_cast<uint64_t>(address);
    if (image.read<uint32_t>(begin) == kWrapper) begin = image.read<uint64_t>(begin + 8);
    if (is_elf(image.text(begin, 4)))
      return static_cast<int>(arch_of_elf(image.read<Elf64_Ehdr>(begin))) == machine_arch ? machine_arch : 0;
    uint64_t size = image.read<uint64_t>(begin + 8), first = begin + image.read<uint16_t>(begin + 6);
    if (image.read<uint32_t>(begin) != kContainer || size > kMaxContainerBytes) return 0;
    for_each_element(image, first, first + size, [&](uint64_t, bool is_ptx, int arch) {
      if (is_ptx) newest = std::max(newest, arch);
      else has_machine_code |= arch == machine_arch;
    });
  } catch (const Unsupported&) {  // NOLINT(bugprone-empty-catch): reported when the container is used
  }
  return newest || !has_machine_code ? newest : machine_arch;
}

GpuCode select_code(const void* address, const CodeRequest& request) {
  if (!address) throw InvalidImage("no image");
  ProcessMemory image;
  uint64_t begin = reinterpret_cast<uint64_t>(address);
  std::string start = image.text(begin, 4);
  uint32_t magic = start.size() == 4 ? image.read<uint32_t>(begin) : 0;
  if (magic == kWrapper) {
    uint64_t container = image.read<uint64_t>(begin + 8);
    if (image.read<uint32_t>(container) == kWrapper) throw InvalidImage("a damaged container: a wrapper in a wrapper");
    return select_code(reinterpret_cast<const void*>(container), request);
  }
  GpuCode code{CodeKind::Ptx, "", 0};
  if (magic == kContainer) {
    uint16_t header = image.read<uint16_t>(begin + 6);
    uint64_t size = image.read<uint64_t>(begin + 8);
    if (header < 16 || size > kMaxContainerBytes) throw InvalidImage("a damaged container");
    code = select_element(image, begin + header, begin + header + size, request);
  } else if (is_elf(start)) {
    code = read_elf(image, begin, request.machine_arch);
  } else {
    code.bytes = image.text(begin, kMaxContainerBytes);
  }
  if (code.kind == CodeKind::Ptx) check_ptx(code.bytes, request.arch);
  return code;
}

GpuCode select_ptx(const void* image, int arch) { return select_code(image, {arch, 0, false}); }

}  // namespace vgpu
