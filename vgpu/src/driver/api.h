// What the files of the driver's interface share.
#pragma once
#include "attributes.h"
#include "device.h"

#define API extern "C" __attribute__((visibility("default")))
// The form that programs call whose default stream is each thread's own: here no stream waits for another.
#define PER_THREAD(function, suffix) \
  extern "C" __attribute__((visibility("default"), alias(#function))) decltype(function) function##suffix

namespace vgpu {

inline void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }
inline uint64_t address(const void* at) { return reinterpret_cast<uint64_t>(at); }

constexpr const char* kDeviceName = "tfdet virtual GPU (CPU emulation)";

// What a call hands out; without a place for it the caller is wrong.
template <class T, class V> CudaResult give(T* to, V value) {
  return to ? (*to = static_cast<T>(value), kSuccess) : kInvalidValue;
}

// A function that a stream calls (cuLaunchHostFunc, a callback) may not call CUDA: is one of this thread's under way?
bool in_host_function();

// There is one device, whose number is 0.
template <class F> int of_device(int device, F f) {
  if (in_host_function()) return kNotPermitted;
  return device == 0 ? static_cast<int>(f()) : kInvalidDevice;
}

// The primary context, by its address alone.
void* context();
void* current_context();  // of this thread; nullptr: none
void use_primary_context();  // as the runtime does, where this thread has none
const void* owning_context();  // what is made now goes with it: the current one, or the primary one
bool managed(uint64_t at, size_t bytes);  // all of it in one allocation of cuMemAllocManaged
void free_memory_of(const void* context);
void destroy_streams_of(const void* context);  // and events
void unload_modules_of(const void* context);

// A handle that stands for something of a vendor library: nothing lies there.
void* dummy_handle();

// A copy; of an end that is said to be the device's the whole range must lie in what is allocated.
struct Copy {
  uint64_t to, from;
  size_t bytes;
  bool to_device = false, from_device = false;
};
CudaResult copy_at_once(const Copy& what, uint32_t operation);  // in no order; operation: of its stream
int copy_now(const Copy& what);                  // after all that the legacy default stream waits for
int copy_on(void* stream, const Copy& what);     // in the stream's order; at once where an end is the host's and not pinned
int copy_in_order(void* stream, const Copy& what);  // as a graph does: the host never waits
// Rows of `count` values of `size` bytes each, `pitch` bytes apart, in the device's memory.
struct Fill {
  uint64_t at;
  size_t pitch;
  uint32_t value;
  size_t size, count, rows;
};
int fill_now(const Fill& what);
int fill_on(void* stream, const Fill& what);

// CUDA_MEMCPY3D: each side's offsets and level, kind of memory (1 host, 2 device), addresses, array, pitch and the rows of a
// slice; then width, height and depth.
struct Memcpy3DSide {
  size_t x, y, z, level;
  unsigned kind;
  const void* host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, rows;
};
struct Memcpy3DParams {
  Memcpy3DSide from, to;
  size_t width, height, depth;
};
int copy_box_now(const Memcpy3DParams& what);
int copy_box_on(void* stream, const Memcpy3DParams& what);
int copy_box_in_order(void* stream, const Memcpy3DParams& what);
bool pinned(const void* at);  // memory of the host that the device knows
bool is_pageable(uint64_t at);  // memory of the host that it does not know
// Does the host wait for the end of a synchronous copy?  Not where both ends are the device's, nor where pageable memory was
// staged: there it waits for what came before the copy (CUDA driver API, "API synchronization behavior").
bool is_awaited(uint64_t from, uint64_t to);

// Loads a module from a container, PTX or what wraps one; vgpu_last_error() gives the reason where that fails.
CudaResult load(CudaModule*& module, const void* image);

// In the stream's order.  kInvalidConfiguration: no grid or block that the device has.
int launch(Kernel& kernel, const Configuration& how, const Arguments& given, void* stream);

// CUlaunchAttribute (the runtime's is the same), and what of them concerns a launch here.
struct LaunchAttribute {
  int id, padding;
  unsigned value[16];
};
CudaResult read(Configuration& how, const LaunchAttribute* attributes, unsigned count);

// The kernel of that name; kNotFound.  The same one each time, until the module goes.
CudaResult find_kernel(Kernel*& kernel, CudaModule& module, const std::string& name);

}  // namespace vgpu

// Of the driver, what other files call.
extern "C" {
int cuDriverGetVersion(int*);
int cuCtxGetStreamPriorityRange(int*, int*);
int cuCtxSynchronize();
int cuDeviceGetAttribute(int*, int, int);
int cuDevicePrimaryCtxGetState(int, unsigned*, int*);
int cuDevicePrimaryCtxReset_v2(int);
int cuDevicePrimaryCtxSetFlags(int, unsigned);
int cuDeviceGetByPCIBusId(int*, const char*);
int cuCtxGetLimit(size_t*, int);
int cuCtxSetLimit(int, size_t);
int cuDeviceGetPCIBusId(char*, int, int);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemAllocManaged(uint64_t*, size_t, unsigned);
int cuMemAdvise(uint64_t, size_t, int, int);
int cuMemPrefetchAsync(uint64_t, size_t, int, void*);
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
int cuMemcpy3D_v2(const vgpu::Memcpy3DParams*);
int cuLaunchHostFunc(void*, void (*)(void*), void*);
int cuMemcpyAsync(uint64_t, uint64_t, size_t, void*);
int cuStreamCreateWithPriority(void**, unsigned, int);
int cuStreamDestroy_v2(void*);
int cuStreamSynchronize(void*);
int cuStreamQuery(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuStreamGetPriority(void*, int*);
int cuStreamGetFlags(void*, unsigned*);
int cuStreamIsCapturing(void*, int*);
int cuEventCreate(void**, unsigned);
int cuEventDestroy_v2(void*);
int cuEventRecord(void*, void*);
int cuEventRecordWithFlags(void*, void*, unsigned);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuMemFreeAsync(uint64_t, void*);
int cuMemAllocAsync(uint64_t*, size_t, void*);
int cuMemHostGetDevicePointer_v2(uint64_t*, void*, unsigned);
int cuStreamAddCallback(void*, void (*)(void*, int, void*), void*, unsigned);
int cuEventElapsedTime(float*, void*, void*);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
}
