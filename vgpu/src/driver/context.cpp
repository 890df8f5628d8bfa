// The device's calls, and its contexts, which all share one address space and its memory.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "api.h"
#include "capture.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

struct Context { unsigned flags; };

// Frees the modules, streams, events and memory of a context.
CudaResult free_objects_of(const void* context) {
  if (CudaResult error = wait_for_all()) return error;
  unload_modules_of(context), destroy_streams_of(context), free_memory_of(context);
  return kSuccess;
}

// The primary context: active while it is retained, and cleared when the last user releases it.  Clearing waits for streams,
// whose host functions may use this object, so it happens without the lock.
class PrimaryContext {
 public:
  void* handle() { return &context_; }
  void retain() {
    std::lock_guard<std::mutex> guard(mutex_);
    references_++, active_ = true;
  }
  CudaResult release() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (!references_) return kInvalidContext;
      if (--references_ || retained_by_runtime_) return kSuccess;
      active_ = false;
    }
    return free_objects_of(handle());
  }
  void retain_for_runtime() {  // until reset(); called at each launch
    if (retained_by_runtime_) return;
    std::lock_guard<std::mutex> guard(mutex_);
    retained_by_runtime_ = active_ = true;
  }
  CudaResult reset() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      retained_by_runtime_ = active_ = false;
    }
    return free_objects_of(handle());
  }
  bool is_active() const { return active_; }
  unsigned flags() const { return context_.flags; }
  void set_flags(unsigned flags) { context_.flags = flags; }

 private:
  std::mutex mutex_;
  Context context_{0};
  unsigned references_ = 0;
  std::atomic<bool> retained_by_runtime_{false}, active_{false};
};

PrimaryContext primary;
thread_local std::vector<void*> context_stack;  // of this thread; the last one is current

bool is_valid_context(const void* handle) {
  return handle == primary.handle() ? primary.is_active() : find_alive<Context>(handle) != nullptr;
}
// Returns f(), or kInvalidContext if the context, or for nullptr the current one, is invalid.
template <class F> int for_context(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  return is_valid_context(handle ? handle : current_context()) ? static_cast<int>(f()) : kInvalidContext;
}
int write_text(char* output, int length, const char* value) {
  if (!output || length <= 0) return kInvalidValue;
  return std::snprintf(output, static_cast<size_t>(length), "%s", value), kSuccess;
}
int create_context(void** context, unsigned flags, int device) {
  if (!context) return kInvalidValue;
  return for_device(device, [=] {
    *context = Handles<Context>::all().add(std::make_unique<Context>(Context{flags}));
    return context_stack.push_back(*context), kSuccess;
  });
}

// CUctx_flags: the low three bits are one of four scheduling policies, the others are independent flags.
bool are_valid_flags(unsigned flags) { return flags < 256 && ((flags & 7) < 3 || (flags & 7) == 4); }

constexpr const char* kBusId = "0000:01:00.0";

}  // namespace

namespace vgpu {

void* context() { return primary.handle(); }
const void* owning_context() {
  const void* current = current_context();
  return current ? current : context();
}
void use_primary_context() {
  const void* current = current_context();
  if (current && current != context()) return;  // the runtime uses the program's own context
  primary.retain_for_runtime();
  if (!current) context_stack.push_back(context());
}
void* current_context() {  // nullptr if another thread has destroyed it
  return context_stack.empty() || !is_valid_context(context_stack.back()) ? nullptr : context_stack.back();
}

}  // namespace vgpu

API int cuInit(unsigned flags) { return flags ? kInvalidValue : (Device::get(), kSuccess); }
API int cuDriverGetVersion(int* version) { return write_output(version, Device::get().driver_version()); }

API int cuDeviceGetCount(int* count) { return write_output(count, 1); }
API int cuDeviceGet(int* device, int number) {
  return for_device(number, [=] { return write_output(device, 0); });
}
API int cuDeviceGetName(char* name, int length, int device) {
  return for_device(device, [=] { return write_text(name, length, kDeviceName); });
}
API int cuDeviceGetUuid(char* uuid, int device) {
  if (!uuid) return kInvalidValue;
  return for_device(device, [=] { return std::memcpy(uuid, "tfdet-virtualgpu", 16), kSuccess; });
}
API int cuDeviceGetUuid_v2(char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return for_device(device, [=] { return write_output(bytes, Device::get().memory().total()); });
}
API int cuDeviceGetAttribute(int* value, int number, int device) {
  if (!is_known_attribute(number)) return kInvalidValue;
  return for_device(device, [=] { return write_output(value, attribute(number)); });
}
API int cuDeviceGetPCIBusId(char* output, int length, int device) {
  return for_device(device, [=] { return write_text(output, length, kBusId); });
}
API int cuDeviceGetByPCIBusId(int* device, const char* name) { return name ? write_output(device, 0) : kInvalidValue; }
API int cuDeviceComputeCapability(int* major, int* minor, int device) {
  if (!major || !minor) return kInvalidValue;
  return for_device(device, [=] { return *major = attribute(kMajor), *minor = attribute(kMinor), kSuccess; });
}
API int cuDeviceGetProperties(int* properties, int device) {  // CUdevprop: attributes 1 to 14
  if (!properties) return kInvalidValue;
  return for_device(device, [=] {
    int* next = properties;
    for (int number : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}) *next++ = attribute(number);
    return kSuccess;
  });
}
API int cuDeviceCanAccessPeer(int* can, int, int) { return write_output(can, 0); }
API int cuDeviceGetP2PAttribute(int* value, int, int, int) { return write_output(value, 0); }
API int cuDeviceGetLuid(char* luid, unsigned* mask, int device) {
  if (!luid || !mask) return kInvalidValue;
  return for_device(device, [=] { return std::memset(luid, 0, 8), *mask = 0, kSuccess; });
}

API int cuDevicePrimaryCtxRetain(void** retained, int device) {
  if (!retained) return kInvalidValue;
  return for_device(device, [=] { return primary.retain(), write_output(retained, context()); });
}
API int cuDevicePrimaryCtxRelease(int device) {
  return for_device(device, [] { return primary.release(); });
}
API int cuDevicePrimaryCtxRelease_v2(int device) { return cuDevicePrimaryCtxRelease(device); }
API int cuDevicePrimaryCtxReset(int device) {
  return for_device(device, [] { return primary.reset(); });
}
API int cuDevicePrimaryCtxReset_v2(int device) { return cuDevicePrimaryCtxReset(device); }
API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (!flags || !active) return kInvalidValue;
  return for_device(device, [=] { return *flags = primary.flags(), *active = primary.is_active(), kSuccess; });
}
API int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
  if (!are_valid_flags(flags)) return kInvalidValue;
  return for_device(device, [=] { return primary.set_flags(flags), kSuccess; });
}
API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags(device, flags); }

API int cuCtxCreate_v2(void** context, unsigned flags, int device) { return create_context(context, flags, device); }
API int cuCtxCreate_v3(void** context, const void*, int, unsigned flags, int device) {
  return create_context(context, flags, device);
}
API int cuCtxCreate_v4(void** context, const void*, unsigned flags, int device) {
  return create_context(context, flags, device);
}
API int cuCtxDestroy_v2(void* context) {
  if (in_host_function()) return kNotPermitted;
  if (!find_alive<Context>(context)) return kInvalidContext;
  free_objects_of(context);
  if (!context_stack.empty() && context_stack.back() == context) context_stack.pop_back();
  return Handles<Context>::all().remove(context), kSuccess;
}
API int cuCtxGetCurrent(void** current) { return write_output(current, current_context()); }
API int cuCtxSetCurrent(void* context) {
  if (context && !is_valid_context(context)) return kInvalidContext;
  if (!context_stack.empty()) context_stack.pop_back();
  if (context) context_stack.push_back(context);
  return kSuccess;
}
API int cuCtxPushCurrent_v2(void* context) {
  if (!is_valid_context(context)) return context ? kInvalidContext : kInvalidValue;
  return context_stack.push_back(context), kSuccess;
}
API int cuCtxPopCurrent_v2(void** popped) {
  if (context_stack.empty()) return kInvalidContext;
  if (popped) *popped = context_stack.back();
  return context_stack.pop_back(), kSuccess;
}
API int cuCtxGetDevice(int* device) {
  return for_context(nullptr, [=] { return write_output(device, 0); });
}
// numba calls the _v2 form with the arguments of CUDA 12, so without a context: an invalid one means the current one.
API int cuCtxGetDevice_v2(int* device, void* handle) {
  return for_context(is_valid_context(handle) ? handle : nullptr, [=] { return write_output(device, 0); });
}
API int cuCtxGetFlags(unsigned* flags) {
  return for_context(nullptr, [=] { return write_output(flags, static_cast<const Context*>(current_context())->flags); });
}
API int cuCtxGetApiVersion(void* handle, unsigned* version) {
  return for_context(handle, [=] { return write_output(version, 3020); });
}
API int cuCtxSynchronize() {
  if (CudaResult error = refuse_while_capturing()) return error;
  return wait_for_all();
}
API int cuCtxSynchronize_v2(void* handle) { return for_context(is_valid_context(handle) ? handle : nullptr, cuCtxSynchronize); }
API int cuCtxGetSharedMemConfig(int* config) { return write_output(config, 1); }
API int cuCtxSetSharedMemConfig(int) { return kSuccess; }
API int cuCtxEnablePeerAccess(void*, unsigned) { return kNotSupported; }
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {  // both pointers are optional
  if (least) *least = 0;
  if (greatest) *greatest = -1;
  return kSuccess;
}
API int cuCtxDisablePeerAccess(void*) { return kNotSupported; }
API int cuCtxGetCacheConfig(int* config) { return write_output(config, 0); }
API int cuCtxSetCacheConfig(int) { return kSuccess; }
API int cuCtxGetId(void* handle, uint64_t* id) {
  return for_context(handle, [=] { return write_output(id, 1); });
}
API int cuProfilerStart() { return kSuccess; }
API int cuProfilerStop() { return kSuccess; }
// CUlimit.  The stack limits the depth of calls, the heap malloc() of kernels; printf is not limited.
constexpr int kStack = 0, kPrintf = 1, kHeap = 2, kLimits = 7;
API int cuCtxGetLimit(size_t* value, int limit) {
  if (in_host_function()) return kNotPermitted;
  if (limit < 0 || limit >= kLimits) return kUnsupportedLimit;
  Device& device = Device::get();
  return write_output(value, limit == kStack    ? device.stack_bytes()
                             : limit == kPrintf ? 1 << 20
                             : limit == kHeap   ? device.heap().bytes()
                                                : 0);
}
API int cuCtxSetLimit(int limit, size_t bytes) {
  constexpr size_t kMaxStack = 512 << 10;
  if (in_host_function()) return kNotPermitted;
  if (limit < 0 || limit >= kLimits || (limit == kStack && bytes > kMaxStack))
    return limit == kStack ? kInvalidValue : kUnsupportedLimit;
  if (limit == kStack) return Device::get().set_stack_bytes(bytes), kSuccess;
  return limit != kHeap || Device::get().heap().resize(bytes) ? kSuccess : kInvalidValue;
}
API int cuCtxResetPersistingL2Cache() { return kSuccess; }
