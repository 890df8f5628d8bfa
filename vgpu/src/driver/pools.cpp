// Pools of memory: by their names alone, for all memory is the device's, and free as soon as it is given back.  And what
// else is asked of memory.
#include <atomic>
#include <cstring>

#include "api.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

struct Pool {};

Pool the_pool;  // the device's own
std::atomic<void*> chosen{&the_pool};

// CUmemPool_attribute: 1 to 3 are words, whether memory may be used again; then the threshold, and what is held and used.
size_t size_of(int which) { return which >= 1 && which <= 3 ? sizeof(int) : sizeof(uint64_t); }
bool known_attribute_of_pool(int which) { return which >= 1 && which <= 8; }

template <class F> int of_pool(const void* handle, F f) {
  return handle == &the_pool || alive<Pool>(handle) ? static_cast<int>(f()) : kInvalidValue;
}
int nothing(const void* pool) {
  return of_pool(pool, [] { return kSuccess; });
}

}  // namespace

API int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return of_device(device, [=] { return give(pool, &the_pool); });
}
API int cuDeviceGetMemPool(void** pool, int device) {
  return of_device(device, [=] { return give(pool, chosen.load()); });
}
API int cuDeviceSetMemPool(int device, void* pool) {
  return of_device(device, [=] { return of_pool(pool, [=] { return chosen = pool, kSuccess; }); });
}
API int cuMemPoolCreate(void** pool, const void* properties) {
  if (!pool || !properties) return kInvalidValue;
  return *pool = Handles<Pool>::all().add(std::make_unique<Pool>()), kSuccess;
}
API int cuMemPoolDestroy(void* pool) {
  if (!Handles<Pool>::all().take(pool)) return kInvalidValue;
  if (chosen == pool) chosen = &the_pool;
  return kSuccess;
}
API int cuMemPoolTrimTo(void* pool, size_t) { return nothing(pool); }
API int cuMemPoolSetAttribute(void* pool, int which, void* value) {
  return known_attribute_of_pool(which) && value ? nothing(pool) : kInvalidValue;
}
API int cuMemPoolGetAttribute(void* pool, int which, void* value) {
  if (!known_attribute_of_pool(which) || !value) return kInvalidValue;
  return of_pool(pool, [=] {
    uint64_t told = size_of(which) == sizeof(int) ? 1 : which == 4 ? 0 : Device::get().memory().used();
    return std::memcpy(value, &told, size_of(which)), kSuccess;
  });
}
API int cuMemPoolSetAccess(void* pool, const void*, size_t) { return nothing(pool); }
API int cuMemPoolGetAccess(int* flags, void* pool, const void*) {
  return of_pool(pool, [=] { return give(flags, 3); });  // reads and writes
}
API int cuMemAllocFromPoolAsync(uint64_t* to, size_t bytes, void* pool, void* stream) {
  if (!stream_of(stream)) return kInvalidHandle;
  return of_pool(pool, [=] { return cuMemAllocAsync(to, bytes, stream); });
}
API int cuDeviceGetGraphMemAttribute(int device, int, uint64_t* value) {
  return of_device(device, [=] { return give(value, 0); });
}
API int cuDeviceSetGraphMemAttribute(int, int, const uint64_t*) { return kSuccess; }
API int cuDeviceGraphMemTrim(int) { return kSuccess; }

// Rows that begin at what textures want, too.
API int cuMemAllocPitch_v2(uint64_t* to, size_t* pitch, size_t width, size_t height, unsigned element) {
  const size_t rounded = (width + 511) / 512 * 512;
  if (!to || !pitch || !width || !height || rounded < width || height > SIZE_MAX / rounded) return kInvalidValue;
  if (element != 4 && element != 8 && element != 16) return kInvalidValue;
  return *pitch = rounded, cuMemAlloc_v2(to, rounded * height);
}

// Managed memory lies where everybody sees it: advice and prefetches are checked, and there is nothing to do.
namespace {

constexpr int kHostDevice = -1, kLeastAdvice = 1, kMaxAdvice = 6;  // CUmem_advise
bool concerns_device(int advice) { return advice == 3 || advice >= 5; }  // where it should lie, and who reads it

// CUmemLocation: its kind (1 a device, above it places of the host) and number, in one register.
int device_at(uint64_t location) { return (location & 0xffffffff) == 1 ? static_cast<int>(location >> 32) : kHostDevice; }
int check_managed(uint64_t at, size_t bytes, int device) {
  if (in_host_function()) return kNotPermitted;
  if (device != kHostDevice && device) return kInvalidDevice;
  return bytes && managed(at, bytes) ? kSuccess : kInvalidValue;
}

}  // namespace

API int cuMemAdvise(uint64_t at, size_t bytes, int advice, int device) {
  if (advice < kLeastAdvice || advice > kMaxAdvice) return kInvalidValue;
  return check_managed(at, bytes, concerns_device(advice) ? device : 0);
}
API int cuMemAdvise_v2(uint64_t at, size_t bytes, int advice, uint64_t location) {
  return cuMemAdvise(at, bytes, advice, device_at(location));
}
API int cuMemPrefetchAsync(uint64_t at, size_t bytes, int device, void* stream) {
  if (!stream_of(stream)) return kInvalidHandle;
  return check_managed(at, bytes, device);
}
API int cuMemPrefetchAsync_v2(uint64_t at, size_t bytes, uint64_t location, unsigned flags, void* stream) {
  return flags ? kInvalidValue : cuMemPrefetchAsync(at, bytes, device_at(location), stream);
}
API int cuFlushGPUDirectRDMAWrites(int, int) { return kSuccess; }
