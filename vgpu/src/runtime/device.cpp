// The runtime's functions about the device, and its properties (cudaDeviceProp).
#include <climits>
#include <cstdio>
#include <cstring>

#include "registration.h"

using namespace vgpu;

namespace {

// The beginning of cudaDeviceProp, which is the same in all versions.
struct Properties {
  char name[256], uuid[16], luid[8];
  unsigned mask;
  size_t memory, shared;
  int registers, lanes;
  size_t pitch;
  int threads, block[3], grid[3], clock;
  size_t constant;
  int major, minor;
  size_t texture, texture_pitch;  // alignments
  int overlap, multiprocessors;
};

Properties properties() {
  Properties result = {};
  std::snprintf(result.name, sizeof result.name, "%s", kDeviceName);
  std::memcpy(result.uuid, "tfdet-virtualgpu", 16);
  result.memory = Device::get().memory().total(), result.shared = static_cast<size_t>(attribute(kSharedOfBlock));
  result.registers = attribute(kRegistersOfBlock), result.lanes = attribute(kLanesOfWarp),
  result.pitch = static_cast<size_t>(attribute(kMaxPitch));
  result.threads = attribute(kMaxThreads), result.clock = attribute(kClockKhz),
  result.constant = static_cast<size_t>(attribute(kConstantBytes));
  for (int k = 0; k < 3; k++) result.block[k] = attribute(kMaxThreadsX + k), result.grid[k] = attribute(kMaxBlocksX + k);
  result.major = attribute(kMajor), result.minor = attribute(kMinor), result.texture = 512, result.texture_pitch = 32,
  result.overlap = 1;
  result.multiprocessors = attribute(kMultiprocessors);
  return result;
}

}  // namespace

// Offsets of the other fields by version: 11 inserted a cache size before the threads of a multiprocessor, 13 removed obsolete
// fields (clocks, overlapping copies).  bytes: of the structure; engines: of asynchronous copies; unified: addressing; threads,
// shared, registers: of a multiprocessor; cooperative: launches; opt_in: sharedMemPerBlockOptin.
struct Layout {
  int end_version;  // the first version with another layout
  size_t bytes, multiprocessors, concurrent, engines, unified, bus, cache, threads, shared, registers, cooperative, opt_in;
};
constexpr Layout kLayouts[] = {{11000, 712, 388, 576, 600, 604, 612, 616, 620, 640, 648, 688, 696},
                               {12000, 728, 388, 576, 600, 604, 612, 616, 624, 640, 648, 688, 696},
                               {13000, 1032, 388, 576, 600, 604, 612, 616, 624, 640, 648, 688, 696},
                               {INT_MAX, 1008, 384, 560, 584, 588, 592, 596, 604, 624, 632, 668, 672}};

// Attributes of texture and surface limits in the order of cudaDeviceProp; 13 removed the one of linear memory.
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

// Writes the properties in the layout of a version; called by the shim of each version (soname_shims/cudart.cpp).
API int vgpu_device_properties(char* output, int version) {
  if (!output) return kInvalidValue;
  const Layout* layout = kLayouts;
  while (version >= layout->end_version) layout++;
  const Properties first = properties();
  std::memset(output, 0, layout->bytes);
  std::memcpy(output, &first, sizeof first);
  auto put = [output](size_t offset, int value) { std::memcpy(output + offset, &value, sizeof value); };
  if (version < 13000) put(608, attribute(kMemoryClockKhz));
  else put(348, 0), put(388, 0);  // clears the clock and the multiprocessors where older layouts have them
  size_t texture = layout->multiprocessors + (version < 13000 ? 20 : 12);
  for (int number : kTextures)
    if (number != kLinearTexture || version < 13000) put(texture, attribute(number)), texture += sizeof(int);
  put((texture + 7) / 8 * 8, attribute(kSurfaceAlignment));
  // Numbers without a name are of CUdevice_attribute, such as 31, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS.
  put(layout->multiprocessors, attribute(kMultiprocessors)), put(layout->concurrent, attribute(31));
  put(layout->engines, attribute(40)), put(layout->unified, attribute(41)), put(layout->bus, attribute(kBusWidth));
  put(layout->cache, attribute(kL2Bytes)), put(layout->threads, attribute(kThreadsOfMultiprocessor));
  put(layout->shared, attribute(kSharedOfMultiprocessor)), put(layout->registers, attribute(82));
  put(layout->cooperative, attribute(95)), put(layout->opt_in, attribute(kSharedOptIn));
  const size_t blocks = layout->opt_in + 16;  // per multiprocessor; since 11
  if (blocks < layout->bytes) put(blocks, attribute(kBlocksOfMultiprocessor));
  return kSuccess;
}

API int cudaGetDeviceCount(int* count) { return set_last_error(write_output(count, 1)); }
API int cudaGetDevice(int* device) { return set_last_error(write_output(device, 0)); }
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
API int cudaDeviceGetAttribute(int* value, int number, int device) {
  return set_last_error(cuDeviceGetAttribute(value, number, device));
}
API int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return set_last_error(cuDeviceGetPCIBusId(text, length, device));
}
API int cudaDeviceCanAccessPeer(int* can, int, int) { return set_last_error(write_output(can, 0)); }
API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return cuCtxGetStreamPriorityRange(least, greatest); }
API int cudaDeviceGetByPCIBusId(int* device, const char* name) { return set_last_error(cuDeviceGetByPCIBusId(device, name)); }
API int cudaDeviceGetP2PAttribute(int* value, int, int, int) { return set_last_error(write_output(value, 0)); }
API int cudaDeviceGetLimit(size_t* value, int limit) { return set_last_error(cuCtxGetLimit(value, limit)); }
API int cudaDeviceGetCacheConfig(int* config) { return set_last_error(write_output(config, 0)); }
API int cudaDeviceSetCacheConfig(int) { return kSuccess; }
API int cudaDeviceGetSharedMemConfig(int* config) { return set_last_error(write_output(config, 1)); }
API int cudaProfilerStart() { return kSuccess; }
API int cudaProfilerStop() { return kSuccess; }
API int cudaDeviceSetLimit(int limit, size_t bytes) { return set_last_error(cuCtxSetLimit(limit, bytes)); }
API int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
API int cudaDriverGetVersion(int* version) { return set_last_error(cuDriverGetVersion(version)); }
