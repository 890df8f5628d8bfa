// Helpers, copies, fills, launches and entry points that the files of the driver's interface share.
#pragma once
#include <array>

#include "attributes.h"
#include "device.h"

#define API extern "C" __attribute__((visibility("default")))

namespace vgpu {

// While it exists, the default stream of this thread's calls is a stream of the thread (CU_STREAM_PER_THREAD).
class PerThreadScope {
 public:
  PerThreadScope();
  ~PerThreadScope();
  PerThreadScope(const PerThreadScope&) = delete;
  PerThreadScope& operator=(const PerThreadScope&) = delete;

 private:
  const bool outer_;
};
template <auto F, class T = decltype(F)> struct PerThreadForm;
template <auto F, class Result, class... Arguments> struct PerThreadForm<F, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    PerThreadScope scope;
    return F(arguments...);
  }
};

inline void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }
inline uint64_t address(const void* at) { return reinterpret_cast<uint64_t>(at); }

constexpr const char* kDeviceName = "tfdet virtual GPU (CPU emulation)";

// Writes the output of a call; returns kInvalidValue if the caller's pointer is null.
template <class T, class V> CudaResult write_output(T* output, V value) {
  return output ? (*output = static_cast<T>(value), kSuccess) : kInvalidValue;
}

// Returns whether this thread executes a host function of a stream (cuLaunchHostFunc, a callback), which may not call CUDA.
bool in_host_function();

// Returns f() for device 0, the only one, and kInvalidDevice for others.
template <class F> int for_device(int device, F f) {
  if (in_host_function()) return kNotPermitted;
  return device == 0 ? static_cast<int>(f()) : kInvalidDevice;
}

// The handle of the primary context, which is not dereferenced.
void* context();
void* current_context();  // the current context of this thread; nullptr: none
void use_primary_context();  // makes it current if this thread has no current context, as the runtime does
const void* owning_context();  // of objects created now: the current context, or the primary one
bool is_managed(uint64_t at, size_t bytes);  // whether one allocation of cuMemAllocManaged contains all of it
void free_memory_of(const void* context);
void destroy_streams_of(const void* context);  // and events
void unload_modules_of(const void* context);

// Returns a new handle for an object of a vendor library; it does not point to memory.
void* dummy_handle();

// A copy.  If to_device or from_device is set, that whole range must be allocated.
struct Copy {
  uint64_t to, from;
  size_t bytes;
  bool to_device = false, from_device = false;
};
CudaResult copy_immediately(const Copy& copy,
                            uint32_t operation);  // without waiting; operation: its number for VGPU_CHECK=order
int copy_now(const Copy& copy);                     // in order of the default stream
int copy_on(void* stream, const Copy& copy);        // in order of the stream; pageable memory is copied before it returns
int copy_in_order(void* stream, const Copy& copy);  // in order of the stream; the host never waits, as in a graph
// Rows of `count` values of `size` bytes each, `pitch` bytes apart, in the device's memory.
struct Fill {
  uint64_t at;
  size_t pitch;
  uint32_t value;
  size_t size, count, rows;
};
int fill_now(const Fill& fill);
int fill_on(void* stream, const Fill& fill);

// CUDA_MEMCPY3D.  kind: 1 host, 2 device, 3 array, 4 unified; rows: of a slice.
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
CudaResult prepare_box_copy(Memcpy3DParams& params);  // checks it, and replaces arrays by their memory
int copy_box_now(const Memcpy3DParams& params);
int copy_box_on(void* stream, const Memcpy3DParams& params);
int copy_box_in_order(void* stream, const Memcpy3DParams& params);  // after prepare_box_copy()
bool is_pinned(const void* at);  // whether it is host memory that the device can access
bool is_pageable(uint64_t at);   // whether it is host memory that the device cannot access
// Returns whether the host waits for the end of a synchronous copy.  It does not if both ends are device memory, nor if pageable
// memory was staged (CUDA driver API, "API synchronization behavior").
bool is_awaited(uint64_t from, uint64_t to);

// Loads a module from a container (fat binary), a wrapper of one, PTX or a cubin; vgpu_last_error() tells why it failed.
CudaResult load_module(CudaModule*& module, const void* image);

// Launches in order of the stream.  kInvalidConfiguration: the device does not support this grid or block.
int launch(Kernel& kernel, const Configuration& configuration, const Arguments& arguments, void* stream);

// CUlaunchAttribute, which is the same as the runtime's.
struct LaunchAttribute {
  using Value = std::array<unsigned, 16>;
  int id, padding;
  Value value;
};
constexpr int kPriorityAttribute = 8;
// Applies the attributes that matter here to a configuration.
CudaResult apply_attributes(Configuration& configuration, const LaunchAttribute* attributes, unsigned count);

// Finds a kernel by name, or returns kNotFound.  Each name has one Kernel object until its module is unloaded.
CudaResult find_kernel(Kernel*& kernel, CudaModule& module, const std::string& name);

}  // namespace vgpu

// Defines the form of a call for programs compiled with per-thread default streams.  An indirect function, as the compiler knows
// the parameters of the call, but the macro does not.
#define PER_THREAD(function, suffix)                                                                            \
  extern "C" decltype(&function) resolve_##function##suffix() { return &vgpu::PerThreadForm<&function>::call; } \
  extern "C" __attribute__((visibility("default"), ifunc("resolve_" #function #suffix))) decltype(function) function##suffix

// Entry points of the driver that other files call.
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
int cuMemAdvise_v2(uint64_t, size_t, int, uint64_t);
int cuMemPrefetchAsync_v2(uint64_t, size_t, uint64_t, unsigned, void*);
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
int cuStreamWaitEvent(void*, void*, unsigned);
int cuStreamGetPriority(void*, int*);
int cuStreamGetFlags(void*, unsigned*);
int cuStreamIsCapturing(void*, int*);
int cuEventCreate(void**, unsigned);
int cuEventDestroy_v2(void*);
int cuEventRecord(void*, void*);
int cuEventRecordWithFlags(void*, void*, unsigned);
int cuEventSynchronize(void*);
int cuMemFreeAsync(uint64_t, void*);
int cuMemAllocAsync(uint64_t*, size_t, void*);
int cuMemHostGetDevicePointer_v2(uint64_t*, void*, unsigned);
int cuStreamAddCallback(void*, void (*)(void*, int, void*), void*, unsigned);
int cuEventElapsedTime(float*, void*, void*);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
}
