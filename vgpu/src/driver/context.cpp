// The device and its one context.
#include <cstdio>
#include <cstring>
#include <vector>

#include "api.h"

using namespace vgpu;

namespace {
char the_context[64];
thread_local std::vector<void*> stack;  // of this thread; the current one is the last
}  // namespace

namespace vgpu {

void* context() { return the_context; }
void* current_context() { return stack.empty() ? nullptr : stack.back(); }

int attribute(int which) {
  int capability = Device::get().capability();
  switch (which) {
    case 1: case 2: case 3: return 1024;      // threads of a block, and in x and y
    case 4: return 64;                        // in z
    case 5: return 2147483647;                // blocks in x
    case 6: case 7: return 65535;             // in y and z
    case 8: return 49152;                     // shared memory of a block
    case 9: return 65536;                     // constant memory
    case 10: return 32;                       // lanes
    case 11: return 2147483647;               // pitch
    case 12: case 82: return 65536;           // registers
    case 13: return 1380000;                  // kHz
    case 14: return 512;                      // alignment of textures
    case 16: return 2;                        // multiprocessors: few, so that grids stay small
    case 36: return 877000;                   // kHz of the memory
    case 37: return 4096;                     // bits of its bus
    case 38: return 6291456;                  // L2 cache
    case 39: return 2048;                     // threads of a multiprocessor
    case 40: return 2;
    case 75: return capability / 10;
    case 76: return capability % 10;
    case 81: case 97: return 98304;           // shared memory of a multiprocessor, and of a block that asks for more
    case 106: return 32;                      // blocks of a multiprocessor
    case 111: return 1024;                    // shared memory that each block loses
    case 15: case 19: case 31: case 33: case 41: case 77: case 78: case 79: case 83: case 86: case 89: case 90: case 95:
      return 1;                               // it can do that
    default: return 0;
  }
}

}  // namespace vgpu

API int cuInit(unsigned) { return Device::get(), kSuccess; }
API int cuDriverGetVersion(int* version) { return *version = Device::get().driver_version(), kSuccess; }

API int cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
API int cuDeviceGet(int* device, int number) { return *device = 0, number == 0 ? kSuccess : 101; }
API int cuDeviceGetName(char* name, int length, int) {
  return std::snprintf(name, static_cast<size_t>(length), "%s", kName), kSuccess;
}
API int cuDeviceGetUuid(char* uuid, int) { return std::memcpy(uuid, "tfdet-virtualgpu", 16), kSuccess; }
API int cuDeviceGetUuid_v2(char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
API int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = Device::get().memory().total(), kSuccess; }
API int cuDeviceGetAttribute(int* value, int which, int) { return *value = attribute(which), kSuccess; }
API int cuDeviceGetPCIBusId(char* text, int length, int) {
  return std::snprintf(text, static_cast<size_t>(length), "0000:01:00.0"), kSuccess;
}
API int cuDeviceGetByPCIBusId(int* device, const char*) { return *device = 0, kSuccess; }
API int cuDeviceComputeCapability(int* major, int* minor, int) {
  return *major = attribute(75), *minor = attribute(76), kSuccess;
}
API int cuDeviceGetProperties(int* properties, int) {  // CUdevprop
  const int values[] = {1024, 1024, 1024, 64, 2147483647, 65535, 65535, 49152, 65536, 32, 2147483647, 65536, 1380000, 512};
  return std::memcpy(properties, values, sizeof values), kSuccess;
}
API int cuDeviceCanAccessPeer(int* can, int, int) { return *can = 0, kSuccess; }

API int cuDeviceGetP2PAttribute(int* value, int, int, int) { return *value = 0, kSuccess; }
API int cuDeviceGetLuid(char* luid, unsigned* mask, int) { return std::memset(luid, 0, 8), *mask = 0, kSuccess; }

API int cuDevicePrimaryCtxRetain(void** made, int) { return *made = context(), kSuccess; }
API int cuDevicePrimaryCtxRelease(int) { return kSuccess; }
API int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
API int cuDevicePrimaryCtxReset(int) { return kSuccess; }
API int cuDevicePrimaryCtxReset_v2(int) { return kSuccess; }
API int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) { return *flags = 0, *active = 1, kSuccess; }
API int cuDevicePrimaryCtxSetFlags(int, unsigned) { return kSuccess; }
API int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return kSuccess; }

API int cuCtxCreate_v2(void** made, unsigned, int) { return stack.push_back(*made = handle()), kSuccess; }
API int cuCtxCreate_v3(void** made, const void*, int, unsigned flags, int device) { return cuCtxCreate_v2(made, flags, device); }
API int cuCtxCreate_v4(void** made, const void*, unsigned flags, int device) { return cuCtxCreate_v2(made, flags, device); }
API int cuCtxDestroy_v2(void* which) {
  if (current_context() == which) stack.pop_back();
  return kSuccess;
}
API int cuCtxGetCurrent(void** found) { return *found = current_context(), kSuccess; }
API int cuCtxSetCurrent(void* wanted) {
  if (!stack.empty()) stack.pop_back();
  if (wanted) stack.push_back(wanted);
  return kSuccess;
}
API int cuCtxPushCurrent_v2(void* wanted) { return stack.push_back(wanted), kSuccess; }
API int cuCtxPopCurrent_v2(void** found) {
  if (stack.empty()) return kInvalidContext;
  if (found) *found = stack.back();
  return stack.pop_back(), kSuccess;
}
API int cuCtxGetDevice(int* device) { return *device = 0, kSuccess; }
API int cuCtxGetDevice_v2(int* device, void*) { return cuCtxGetDevice(device); }
API int cuCtxGetFlags(unsigned* flags) { return *flags = 0, kSuccess; }
API int cuCtxGetApiVersion(void*, unsigned* version) { return *version = 3020, kSuccess; }
API int cuCtxSynchronize() { return Device::get().sticky(); }
API int cuCtxSynchronize_v2(void*) { return cuCtxSynchronize(); }
API int cuCtxGetSharedMemConfig(int* config) { return *config = 1, kSuccess; }
API int cuCtxSetSharedMemConfig(int) { return kSuccess; }
API int cuCtxEnablePeerAccess(void*, unsigned) { return kNotSupported; }
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -1, kSuccess; }
API int cuCtxDisablePeerAccess(void*) { return kNotSupported; }
API int cuCtxGetCacheConfig(int* config) { return *config = 0, kSuccess; }
API int cuCtxSetCacheConfig(int) { return kSuccess; }
API int cuCtxGetId(void*, uint64_t* id) { return *id = 1, kSuccess; }
API int cuProfilerStart() { return kSuccess; }
API int cuProfilerStop() { return kSuccess; }
// CUlimit: 0 the stack, 1 what printf holds, 2 the heap of malloc; of these the heap alone is one here.
API int cuCtxGetLimit(size_t* value, int which) {
  return *value = which == 0 ? 1024 : which == 1 ? 1 << 20 : which == 2 ? Device::get().heap().bytes() : 0, kSuccess;
}
API int cuCtxSetLimit(int which, size_t bytes) {
  return which != 2 || Device::get().heap().resize(bytes) ? kSuccess : kInvalidValue;
}
API int cuCtxResetPersistingL2Cache() { return kSuccess; }
