// The runtime's view of the device.
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
  std::snprintf(p.name, sizeof p.name, "%s", kName);
  std::memcpy(p.uuid, "tfdet-virtualgpu", 16);
  p.memory = Device::get().memory().total(), p.shared = 49152, p.registers = 65536, p.lanes = 32, p.pitch = 2147483647;
  p.threads = 1024, p.block[0] = p.block[1] = 1024, p.block[2] = 64;
  p.grid[0] = 2147483647, p.grid[1] = p.grid[2] = 65535, p.clock = attribute(13), p.constant = 65536;
  p.major = attribute(75), p.minor = attribute(76), p.texture = 512, p.texture_pitch = 32, p.overlap = 1;
  p.multiprocessors = attribute(16);
  return p;
}

}  // namespace

// For the little libraries of each version.
API int vgpu_device_properties(char* at, int version) {
  Properties first = properties();
  std::memset(at, 0, version < 11000 ? 712 : version < 12000 ? 728 : 1032);
  std::memcpy(at, &first, sizeof first);
  auto put = [at](size_t offset, int value) { std::memcpy(at + offset, &value, sizeof value); };
  put(576, 1), put(600, 2), put(604, 1), put(608, attribute(36)), put(612, attribute(37)), put(616, attribute(38));
  put(version < 11000 ? 620 : 624, attribute(39));
  return put(640, attribute(81)), put(648, attribute(82)), put(696, attribute(97)), kSuccess;
}

API int cudaGetDeviceCount(int* count) { return *count = 1, kSuccess; }
API int cudaGetDevice(int* device) { return *device = 0, kSuccess; }
API int cudaSetDevice(int device) { return remember(device == 0 ? 0 : 101); }
API int cudaSetDeviceFlags(unsigned) { return kSuccess; }
API int cudaGetDeviceFlags(unsigned* flags) { return *flags = 0, kSuccess; }
API int cudaDeviceSynchronize() { return remember(Device::get().sticky()); }
API int cudaDeviceReset() { return kSuccess; }
API int cudaDeviceGetAttribute(int* value, int which, int) { return *value = attribute(which), kSuccess; }
API int cudaDeviceGetPCIBusId(char* text, int length, int device) { return cuDeviceGetPCIBusId(text, length, device); }
API int cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, kSuccess; }
API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -1, kSuccess; }
API int cudaDeviceGetByPCIBusId(int* device, const char*) { return *device = 0, kSuccess; }
API int cudaDeviceGetP2PAttribute(int* value, int, int, int) { return *value = 0, kSuccess; }
API int cudaDeviceGetLimit(size_t* value, int which) { return cuCtxGetLimit(value, which); }
API int cudaDeviceGetCacheConfig(int* config) { return *config = 0, kSuccess; }
API int cudaDeviceSetCacheConfig(int) { return kSuccess; }
API int cudaDeviceGetSharedMemConfig(int* config) { return *config = 1, kSuccess; }
API int cudaProfilerStart() { return kSuccess; }
API int cudaProfilerStop() { return kSuccess; }
API int cudaDeviceSetLimit(int which, size_t bytes) { return remember(cuCtxSetLimit(which, bytes)); }
API int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
API int cudaDriverGetVersion(int* version) { return cuDriverGetVersion(version); }
