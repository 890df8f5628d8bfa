// The device and its contexts, which share all that there is.
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

// What was made in a context goes with it.
CudaResult clear(const void* which) {
  if (CudaResult broken = wait_for_all()) return broken;
  unload_modules_of(which), destroy_streams_of(which), free_memory_of(which);
  return kSuccess;
}

// The device's own context: active from its first user on, and reset when the last one releases it.  What clears it waits
// for streams, and their host functions may ask for it: never while the lock is held.
class PrimaryContext {
 public:
  void* handle() { return &context_; }
  void retain() {
    std::lock_guard<std::mutex> one(mutex_);
    references_++, active_ = true;
  }
  CudaResult release() {
    {
      std::lock_guard<std::mutex> one(mutex_);
      if (!references_) return kInvalidContext;
      if (--references_ || by_runtime_) return kSuccess;
      active_ = false;
    }
    return clear(handle());
  }
  void retain_for_runtime() {  // which releases it by a reset alone, and asks at each launch
    if (by_runtime_) return;
    std::lock_guard<std::mutex> one(mutex_);
    by_runtime_ = active_ = true;
  }
  CudaResult reset() {
    {
      std::lock_guard<std::mutex> one(mutex_);
      by_runtime_ = active_ = false;
    }
    return clear(handle());
  }
  bool active() const { return active_; }
  unsigned flags() const { return context_.flags; }
  void set_flags(unsigned flags) { context_.flags = flags; }

 private:
  std::mutex mutex_;
  Context context_{0};
  unsigned references_ = 0;
  std::atomic<bool> by_runtime_{false}, active_{false};
};

PrimaryContext primary;
thread_local std::vector<void*> stack;  // of this thread; the current one is the last

bool known(const void* handle) { return handle == primary.handle() ? primary.active() : alive<Context>(handle) != nullptr; }
// Of the context that is named, or where none is, of this thread's.
template <class F> int of_context(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  return known(handle ? handle : current_context()) ? static_cast<int>(f()) : kInvalidContext;
}
int text(char* to, int length, const char* words) {
  if (!to || length <= 0) return kInvalidValue;
  return std::snprintf(to, static_cast<size_t>(length), "%s", words), kSuccess;
}
int create(void** made, unsigned flags, int device) {
  if (!made) return kInvalidValue;
  return of_device(device, [=] {
    *made = Handles<Context>::all().add(std::make_unique<Context>(Context{flags}));
    return stack.push_back(*made), kSuccess;
  });
}

// CUctx_flags: how the host waits is one of four, and above it are single bits.
bool valid_flags(unsigned flags) { return flags < 256 && ((flags & 7) < 3 || (flags & 7) == 4); }

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
  if (current && current != context()) return;  // the runtime uses what a program made
  primary.retain_for_runtime();
  if (!current) stack.push_back(context());
}
void* current_context() {  // destroyed by another thread: none
  return stack.empty() || !known(stack.back()) ? nullptr : stack.back();
}

}  // namespace vgpu

API int cuInit(unsigned flags) { return flags ? kInvalidValue : (Device::get(), kSuccess); }
API int cuDriverGetVersion(int* version) { return give(version, Device::get().driver_version()); }

API int cuDeviceGetCount(int* count) { return give(count, 1); }
API int cuDeviceGet(int* device, int number) {
  return of_device(number, [=] { return give(device, 0); });
}
API int cuDeviceGetName(char* name, int length, int device) {
  return of_device(device, [=] { return text(name, length, kDeviceName); });
}
API int cuDeviceGetUuid(char* uuid, int device) {
  if (!uuid) return kInvalidValue;
  return of_device(device, [=] { return std::memcpy(uuid, "tfdet-virtualgpu", 16), kSuccess; });
}
API int cuDeviceGetUuid_v2(char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return of_device(device, [=] { return give(bytes, Device::get().memory().total()); });
}
API int cuDeviceGetAttribute(int* value, int which, int device) {
  if (!known_attribute(which)) return kInvalidValue;
  return of_device(device, [=] { return give(value, attribute(which)); });
}
API int cuDeviceGetPCIBusId(char* to, int length, int device) {
  return of_device(device, [=] { return text(to, length, kBusId); });
}
API int cuDeviceGetByPCIBusId(int* device, const char* name) { return name ? give(device, 0) : kInvalidValue; }
API int cuDeviceComputeCapability(int* major, int* minor, int device) {
  if (!major || !minor) return kInvalidValue;
  return of_device(device, [=] { return *major = attribute(kMajor), *minor = attribute(kMinor), kSuccess; });
}
API int cuDeviceGetProperties(int* properties, int device) {  // CUdevprop
  if (!properties) return kInvalidValue;
  return of_device(device, [=] {
    int* next = properties;
    for (int which : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}) *next++ = attribute(which);
    return kSuccess;
  });
}
API int cuDeviceCanAccessPeer(int* can, int, int) { return give(can, 0); }
API int cuDeviceGetP2PAttribute(int* value, int, int, int) { return give(value, 0); }
API int cuDeviceGetLuid(char* luid, unsigned* mask, int device) {
  if (!luid || !mask) return kInvalidValue;
  return of_device(device, [=] { return std::memset(luid, 0, 8), *mask = 0, kSuccess; });
}

API int cuDevicePrimaryCtxRetain(void** made, int device) {
  if (!made) return kInvalidValue;
  return of_device(device, [=] { return primary.retain(), give(made, context()); });
}
API int cuDevicePrimaryCtxRelease(int device) {
  return of_device(device, [] { return primary.release(); });
}
API int cuDevicePrimaryCtxRelease_v2(int device) { return cuDevicePrimaryCtxRelease(device); }
API int cuDevicePrimaryCtxReset(int device) {
  return of_device(device, [] { return primary.reset(); });
}
API int cuDevicePrimaryCtxReset_v2(int device) { return cuDevicePrimaryCtxReset(device); }
API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (!flags || !active) return kInvalidValue;
  return of_device(device, [=] { return *flags = primary.flags(), *active = primary.active(), kSuccess; });
}
API int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
  if (!valid_flags(flags)) return kInvalidValue;
  return of_device(device, [=] { return primary.set_flags(flags), kSuccess; });
}
API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags(device, flags); }

API int cuCtxCreate_v2(void** made, unsigned flags, int device) { return create(made, flags, device); }
API int cuCtxCreate_v3(void** made, const void*, int, unsigned flags, int device) { return create(made, flags, device); }
API int cuCtxCreate_v4(void** made, const void*, unsigned flags, int device) { return create(made, flags, device); }
API int cuCtxDestroy_v2(void* which) {
  if (in_host_function()) return kNotPermitted;
  if (!alive<Context>(which)) return kInvalidContext;
  clear(which);
  if (!stack.empty() && stack.back() == which) stack.pop_back();
  return Handles<Context>::all().take(which), kSuccess;
}
API int cuCtxGetCurrent(void** found) { return give(found, current_context()); }
API int cuCtxSetCurrent(void* wanted) {
  if (wanted && !known(wanted)) return kInvalidContext;
  if (!stack.empty()) stack.pop_back();
  if (wanted) stack.push_back(wanted);
  return kSuccess;
}
API int cuCtxPushCurrent_v2(void* wanted) {
  if (!known(wanted)) return wanted ? kInvalidContext : kInvalidValue;
  return stack.push_back(wanted), kSuccess;
}
API int cuCtxPopCurrent_v2(void** found) {
  if (stack.empty()) return kInvalidContext;
  if (found) *found = stack.back();
  return stack.pop_back(), kSuccess;
}
API int cuCtxGetDevice(int* device) {
  return of_context(nullptr, [=] { return give(device, 0); });
}
// numba takes whatever is called _v2 for its form of CUDA 12, and gives no context: what is none means the current one.
API int cuCtxGetDevice_v2(int* device, void* of) {
  return of_context(known(of) ? of : nullptr, [=] { return give(device, 0); });
}
API int cuCtxGetFlags(unsigned* flags) {
  return of_context(nullptr, [=] { return give(flags, static_cast<const Context*>(current_context())->flags); });
}
API int cuCtxGetApiVersion(void* of, unsigned* version) {
  return of_context(of, [=] { return give(version, 3020); });
}
API int cuCtxSynchronize() {
  if (CudaResult refused = refuse_while_capturing()) return refused;
  return wait_for_all();
}
API int cuCtxSynchronize_v2(void* which) { return of_context(known(which) ? which : nullptr, cuCtxSynchronize); }
API int cuCtxGetSharedMemConfig(int* config) { return give(config, 1); }
API int cuCtxSetSharedMemConfig(int) { return kSuccess; }
API int cuCtxEnablePeerAccess(void*, unsigned) { return kNotSupported; }
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {  // who wants one of them alone gives no place for the other
  if (least) *least = 0;
  if (greatest) *greatest = -1;
  return kSuccess;
}
API int cuCtxDisablePeerAccess(void*) { return kNotSupported; }
API int cuCtxGetCacheConfig(int* config) { return give(config, 0); }
API int cuCtxSetCacheConfig(int) { return kSuccess; }
API int cuCtxGetId(void* of, uint64_t* id) {
  return of_context(of, [=] { return give(id, 1); });
}
API int cuProfilerStart() { return kSuccess; }
API int cuProfilerStop() { return kSuccess; }
// CUlimit: the stack bounds how deep calls go, and the heap what kernels take; printf is without bound.
constexpr int kStack = 0, kPrintf = 1, kHeap = 2, kLimits = 7;
API int cuCtxGetLimit(size_t* value, int which) {
  if (in_host_function()) return kNotPermitted;
  if (which < 0 || which >= kLimits) return kUnsupportedLimit;
  Device& device = Device::get();
  return give(value, which == kStack    ? device.stack_bytes()
                     : which == kPrintf ? 1 << 20
                     : which == kHeap   ? device.heap().bytes()
                                        : 0);
}
API int cuCtxSetLimit(int which, size_t bytes) {
  constexpr size_t kMaxStack = 512 << 10;
  if (in_host_function()) return kNotPermitted;
  if (which < 0 || which >= kLimits || (which == kStack && bytes > kMaxStack))
    return which == kStack ? kInvalidValue : kUnsupportedLimit;
  if (which == kStack) return Device::get().set_stack_bytes(bytes), kSuccess;
  return which != kHeap || Device::get().heap().resize(bytes) ? kSuccess : kInvalidValue;
}
API int cuCtxResetPersistingL2Cache() { return kSuccess; }
