// The runtime's view of the device.
#include <cstdio>
#include <cstring>

#include "registration.h"

using namespace vgpu;

namespace {

// cudaDeviceProp of CUDA 10; later ones are longer and begin alike.  v2 came with 12.
void fill(char* at, bool v2) {
  struct {
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
  } p = {};
  std::memset(at, 0, v2 ? 1032 : 640);  // no more than the oldest caller has room for
  std::snprintf(p.name, sizeof p.name, "%s", kName);
  std::memcpy(p.uuid, "tfdet-virtualgpu", 16);
  p.memory = Device::get().memory().total(), p.shared = 49152, p.registers = 65536, p.lanes = 32, p.pitch = 2147483647;
  p.threads = 1024, p.block[0] = p.block[1] = 1024, p.block[2] = 64;
  p.grid[0] = 2147483647, p.grid[1] = p.grid[2] = 65535, p.clock = attribute(13), p.constant = 65536;
  p.major = attribute(75), p.minor = attribute(76), p.texture = 512, p.texture_pitch = 32, p.overlap = 1;
  p.multiprocessors = attribute(16);
  std::memcpy(at, &p, sizeof p);
  auto put = [at](size_t offset, int value) { std::memcpy(at + offset, &value, sizeof value); };
  put(576, 1), put(600, 2), put(604, 1), put(608, attribute(36)), put(612, attribute(37)), put(616, attribute(38));
  // Threads of a multiprocessor: CUDA 10 has them at 620, 11 and later at 624.  What lies there in the other is a size of
  // cache, and whether streams have priorities: 2048 does no harm.
  put(620, attribute(39)), put(624, attribute(39));
}

}  // namespace

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
API int cudaDeviceSetLimit(int, size_t) { return kSuccess; }
API int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
API int cudaDriverGetVersion(int* version) { return cuDriverGetVersion(version); }
API int cudaRuntimeGetVersion(int* version) { return cuDriverGetVersion(version); }
API int cudaGetDeviceProperties(char* properties, int) { return fill(properties, false), kSuccess; }
API int cudaGetDeviceProperties_v2(char* properties, int) { return fill(properties, true), kSuccess; }
