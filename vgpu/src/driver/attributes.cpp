// Values of the device's attributes, for its compute capability.
#include "attributes.h"

#include <algorithm>
#include <iterator>

#include "device.h"
#include "settings.h"

namespace vgpu {
namespace {

// What differs between architectures (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
struct Architecture {
  int capability;  // from this one on
  int threads, blocks;           // of a multiprocessor
  int shared, opt_in,
      reserved;  // bytes of shared memory: of a multiprocessor; of a block that opts in; reserved for each block
};
constexpr Architecture kArchitectures[] = {
    {0, 2048, 32, 98304, 49152, 0},       {70, 2048, 32, 98304, 98304, 0},      {75, 1024, 16, 65536, 65536, 0},
    {80, 2048, 32, 167936, 166912, 1024}, {86, 1536, 16, 102400, 101376, 1024}, {87, 1536, 16, 167936, 166912, 1024},
    {89, 1536, 24, 102400, 101376, 1024}, {90, 2048, 32, 233472, 232448, 1024}, {120, 1536, 24, 102400, 101376, 1024}};

// Maximum sizes of textures and surfaces by attribute number, for all architectures from 7.0 on (same source).
struct TextureLimit { int number, size; };
constexpr TextureLimit kTextureLimits[] = {
    {21, 131072},  {22, 131072}, {23, 65536}, {24, 16384},   {25, 16384}, {26, 16384},         // 1D, 2D and 3D
    {27, 32768},   {28, 32768},  {29, 2048},  {42, 32768},   {43, 2048},  {45, 32768}, {46, 32768},  // layered, gathers
    {47, 8192},    {48, 8192},   {49, 32768}, {52, 32768},   {53, 32768}, {54, 2046},  // alternate 3D limits, cubemaps
    {55, 32768},   {56, 131072}, {57, 65536}, {58, 16384},   {59, 16384}, {60, 16384},  // surfaces
    {61, 32768},   {62, 2048},   {63, 32768}, {64, 32768},   {65, 2048},  {66, 32768}, {67, 32768}, {68, 2046},
    {69, 1 << 28}, {70, 131072}, {71, 65000}, {72, 2097120}, {73, 32768}, {74, 32768}, {77, 32768}};  // linear, mipmapped

int texture_limit(int number) {
  auto limit = std::find_if(std::begin(kTextureLimits), std::end(kTextureLimits),
                            [=](const TextureLimit& candidate) { return candidate.number == number; });
  return limit == std::end(kTextureLimits) ? 0 : limit->size;
}

const Architecture& architecture() {
  const int capability = Device::get().capability();
  auto next = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                           [=](const Architecture& candidate) { return candidate.capability > capability; });
  return *std::prev(next);
}

}  // namespace

bool is_known_attribute(int number) { return number >= 1 && number < 200; }

// number: cuda.h: CUdevice_attribute.
int attribute(int number) {
  switch (number) {
    case 1:
    case 2:
    case 3: return 1024;  // threads of a block, and in x and y
    case 4: return 64;  // in z
    case 5: return 2147483647;  // blocks in x
    case 6:
    case 7: return 65535;  // in y and z
    case kSharedOfBlock: return 49152;
    case kConstantBytes: return 65536;
    case kLanesOfWarp: return 32;
    case kMaxPitch: return 2147483647;
    case kRegistersOfBlock:
    case 82: return 65536;  // registers of a multiprocessor
    case kClockKhz: return 1380000;  // kHz
    case kTextureAlignment:
    case kSurfaceAlignment: return 512;
    case kTexturePitchAlignment: return 32;
    case 44: return 1;  // gathers from textures
    case kMultiprocessors: return static_cast<int>(settings().multiprocessors);
    case kMemoryClockKhz: return 877000;  // kHz
    case kBusWidth: return 4096;  // bits
    case kL2Bytes: return 6291456;
    case kThreadsOfMultiprocessor: return architecture().threads;
    case 40: return 2;  // asynchronous copy engines
    case kMajor: return Device::get().capability() / 10;
    case kMinor: return Device::get().capability() % 10;
    case kSharedOfMultiprocessor: return architecture().shared;
    case kSharedOptIn: return architecture().opt_in;
    case kBlocksOfMultiprocessor: return architecture().blocks;
    case kSharedReserved: return architecture().reserved;
    case 15:
    case 19:
    case 31:
    case 33:  // the number of the PCI bus
    case 41:
    case 78:
    case 79:
    case 83:
    case 86:
    case 89:
    case 90:
    case 95:
    case 99:
    case 102:
    case 115: return 1;  // supported features, such as registered host memory (99) and pools (115)
    default: return texture_limit(number);
  }
}

}  // namespace vgpu
