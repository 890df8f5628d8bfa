// The runtime's view of the device.
#include <climits>
#include <cstdio>
#include <cstring>

#include "registration.h"

using namespace vgpu;

namespace {

// cudaDeviceProp begins alike in all versions; 11 put the size of a cache before the threads of a multiprocessor.
struct Properties {
  char name[256], uuid[16], luid[8];
  unsigned mask;
  size_t memory, shared;
  int registers, lanes;
  size_t pitch;
  int threads, block[3], grid[3], clock;
  size_t constant;
  int major, minor;
  size_t texture, texture_pitch;
  int overlap, multiprocessors;
};

Properties properties() {
  Properties p = {};
  std::snprintf(p.name, sizeof p.name, "%s", kDeviceName);
  std::memcpy(p.uuid, "tfdet-virtualgpu", 16);
  p.memory = Device::get().memory().total(), p.shared = static_cast<size_t>(attribute(kSharedOfBlock));
  p.registers = attribute(kRegistersOfBlock), p.lanes = attribute(kLanesOfWarp),
  p.pitch = static_cast<size_t>(attribute(kPitch));
  p.threads = attribute(kMaxThreads), p.clock = attribute(kClock), p.constant = static_cast<size_t>(attribute(kConstantBytes));
  for (int k = 0; k < 3; k++) p.block[k] = attribute(kMaxThreadsX + k), p.grid[k] = attribute(kMaxBlocksX + k);
  p.major = attribute(kMajor), p.minor = attribute(kMinor), p.texture = 512, p.texture_pitch = 32, p.overlap = 1;
  p.multiprocessors = attribute(kMultiprocessors);
  return p;
}

}  // namespace

// Where the rest lies, version by version: 11 put the size of a cache before the threads of a multiprocessor, 13 left out what
// was of no more use (clocks, and whether copies overlap).
struct Layout {
  int before;  // the version that has another
  size_t bytes, multiprocessors, concurrent, engines, unified, bus, cache, threads, shared, registers, cooperative, opt_in;
};
constexpr Layout kLayouts[] = {{11000, 712, 388, 576, 600, 604, 612, 616, 620, 640, 648, 688, 696},
                               {12000, 728, 388, 576, 600, 604, 612, 616, 624, 640, 648, 688, 696},
                               {13000, 1032, 388, 576, 600, 604, 612, 616, 624, 640, 648, 688, 696},
                               {INT_MAX, 1008, 384, 560, 584, 588, 592, 596, 604, 624, 632, 668, 672}};

// The largest textures and surfaces, in the order in which all versions have them; 13 left out the one of linear memory.
constexpr int kLinearTexture = 69;
constexpr int kTextures[] = {21, 77, kLinearTexture,
                             22, 23, 73,
                             74, 70, 71,
                             72, 45, 46,
                             24, 25, 26,
                             47, 48, 49,
                             52, 42, 43,
                             27, 28, 29,
                             53, 54, 55,
                             56, 57, 58,
                             59, 60, 61,
                             62, 63, 64,
                             65, 66, 67,
                             68};

// For the little libraries of each version.
API int vgpu_device_properties(char* at, int version) {
  if (!at) return kInvalidValue;
  const Layout* layout = kLayouts;
  while (version >= layout->before) layout++;
  const Properties first = properties();
  std::memset(at, 0, layout->bytes);
  std::memcpy(at, &first, sizeof first);
  auto put = [at](size_t offset, int value) { std::memcpy(at + offset, &value, sizeof value); };
  if (version < 13000) put(608, attribute(kMemoryClock));
  else put(348, 0), put(388, 0);  // the clock and a second number of multiprocessors are of older ones
  size_t texture = layout->multiprocessors + (version < 13000 ? 20 : 12);
  for (int which : kTextures)
    if (which != kLinearTexture || version < 13000) put(texture, attribute(which)), texture += sizeof(int);
  put((texture + 7) / 8 * 8, attribute(kSurfaceAlignment));
  put(layout->multiprocessors, attribute(kMultiprocessors)), put(layout->concurrent, attribute(31));
  put(layout->engines, attribute(40)), put(layout->unified, attribute(41)), put(layout->bus, attribute(kBusWidth));
  put(layout->cache, attribute(kL2Bytes)), put(layout->threads, attribute(kThreadsOfMultiprocessor));
  put(layout->shared, attribute(kSharedOfMultiprocessor)), put(layout->registers, attribute(82));
  put(layout->cooperative, attribute(95)), put(layout->opt_in, attribute(kSharedOptIn));
  const size_t blocks = layout->opt_in + 16;  // of a multiprocessor; since 11
  if (blocks < layout->bytes) put(blocks, attribute(kBlocksOfMultiprocessor));
  return kSuccess;
}

API int cudaGetDeviceCount(int* count) { return set_last_error(give(count, 1)); }
API int cudaGetDevice(int* device) { return set_last_error(give(device, 0)); }
API int cudaSetDevice(int device) {
  if (device == 0) use_primary_context();
  return set_last_error(device == 0 ? kSuccess : kInvalidDevice);
}
API int cudaSetDeviceFlags(unsigned flags) { return set_last_error(cuDevicePrimaryCtxSetFlags(0, flags)); }
API int cudaGetDeviceFlags(unsigned* flags) {
  int active = 0;
  return set_last_error(cuDevicePrimaryCtxGetState(0, flags, &active));
}
API int cudaDeviceSynchronize() { return use_primary_context(), set_last_error(cuCtxSynchronize()); }
API int cudaDeviceReset() { return set_last_error(cuDevicePrimaryCtxReset_v2(0)); }
API int cudaDeviceGetAttribute(int* value, int which, int device) {
  return set_last_error(cuDeviceGetAttribute(value, which, device));
}
API int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return set_last_error(cuDeviceGetPCIBusId(text, length, device));
}
API int cudaDeviceCanAccessPeer(int* can, int, int) { return set_last_error(give(can, 0)); }
API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return cuCtxGetStreamPriorityRange(least, greatest); }
API int cudaDeviceGetByPCIBusId(int* device, const char* name) { return set_last_error(cuDeviceGetByPCIBusId(device, name)); }
API int cudaDeviceGetP2PAttribute(int* value, int, int, int) { return set_last_error(give(value, 0)); }
API int cudaDeviceGetLimit(size_t* value, int which) { return set_last_error(cuCtxGetLimit(value, which)); }
API int cudaDeviceGetCacheConfig(int* config) { return set_last_error(give(config, 0)); }
API int cudaDeviceSetCacheConfig(int) { return kSuccess; }
API int cudaDeviceGetSharedMemConfig(int* config) { return set_last_error(give(config, 1)); }
API int cudaProfilerStart() { return kSuccess; }
API int cudaProfilerStop() { return kSuccess; }
API int cudaDeviceSetLimit(int which, size_t bytes) { return set_last_error(cuCtxSetLimit(which, bytes)); }
API int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
API int cudaDriverGetVersion(int* version) { return set_last_error(cuDriverGetVersion(version)); }
