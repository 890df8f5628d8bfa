// What the files of the driver's interface share.
#pragma once
#include "device.h"

#define API extern "C" __attribute__((visibility("default")))
// The form that programs call whose default stream is each thread's own: here no stream waits for another.
#define PER_THREAD(function, suffix) \
  extern "C" __attribute__((visibility("default"), alias(#function))) decltype(function) function##suffix

namespace vgpu {

inline void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }
inline uint64_t address(const void* at) { return reinterpret_cast<uint64_t>(at); }

constexpr const char* kName = "tfdet virtual GPU (CPU emulation)";

// The one context, by its address alone.
void* context();
void* current_context();  // of this thread; nullptr: none

// A handle that stands for a stream or an event: everything is done when the call returns.
void* handle();

// The value of a device attribute (cuda.h: CUdevice_attribute; the runtime's are the same numbers).
int attribute(int which);

// A copy; of an end that is said to be the device's the whole range must lie within one allocation.
Result copied(uint64_t to, uint64_t from, size_t bytes, bool to_device, bool from_device);
// `count` values of `size` bytes each, in memory that is known; rows of them, `pitch` bytes apart.
Result filled(uint64_t at, const void* value, size_t size, size_t count);
Result filled_rows(uint64_t at, size_t pitch, const void* value, size_t size, size_t width, size_t height);

// CUDA_MEMCPY3D: each side's offsets and level, kind of memory (1 host, 2 device), addresses, array, pitch and the rows of a
// slice; then width, height and depth.
struct BoxSide {
  size_t x, y, z, level;
  unsigned kind;
  const void* host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, rows;
};
struct Box { BoxSide from, to; size_t width, height, depth; };

// Loads a module from a container, PTX or what wraps one; the reason stands in vgpu_last_fault() where it is refused.
Result load(Module*& module, const void* image);

// In a thread of its own, in order, as drivers call back.
void call_later(void (*f)(void*), void* data);

}  // namespace vgpu

// Of the driver, what other files call.
extern "C" {
int cuDriverGetVersion(int*);
int cuCtxGetLimit(size_t*, int);
int cuCtxSetLimit(int, size_t);
int cuDeviceGetPCIBusId(char*, int, int);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemAllocManaged(uint64_t*, size_t, unsigned);
int cuMemFree_v2(uint64_t);
int cuModuleLoadData(void**, const void*);
int cuModuleUnload(void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuModuleGetFunctionCount(unsigned*, void*);
int cuModuleEnumerateFunctions(void**, unsigned, void*);
int cuModuleGetGlobal_v2(uint64_t*, size_t*, void*, const char*);
int cuFuncGetModule(void**, void*);
int cuFuncGetName(const char**, void*);
int cuFuncGetAttribute(int*, int, void*);
int cuFuncSetAttribute(void*, int, int);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemcpy(uint64_t, uint64_t, size_t);
int cuMemcpy3D_v2(const vgpu::Box*);
int cuStreamAddCallback(void*, void (*)(void*, int, void*), void*, unsigned);
int cuEventElapsedTime(float*, void*, void*);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
}
