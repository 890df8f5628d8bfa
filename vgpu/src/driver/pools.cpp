// Memory pools, which exist only as handles: all of them allocate from the device's memory, and freed memory is reusable at once.
// Also pitched allocations, and advice and prefetches for managed memory.
#include <atomic>
#include <cstring>

#include "api.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

struct Pool {};

Pool default_pool;
std::atomic<void*> current_pool{&default_pool};

// CUmemPool_attribute: 1 to 3 are int flags of reuse; the others are the threshold, and reserved and used bytes, as uint64_t.
size_t attribute_size(int attribute_number) {
  return attribute_number >= 1 && attribute_number <= 3 ? sizeof(int) : sizeof(uint64_t);
}
bool is_pool_attribute(int attribute_number) { return attribute_number >= 1 && attribute_number <= 8; }

template <class F> int for_pool(const void* handle, F f) {
  return handle == &default_pool || find_alive<Pool>(handle) ? static_cast<int>(f()) : kInvalidValue;
}
int accept_pool(const void* pool) {
  return for_pool(pool, [] { return kSuccess; });
}

}  // namespace

API int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return for_device(device, [=] { return write_output(pool, &default_pool); });
}
API int cuDeviceGetMemPool(void** pool, int device) {
  return for_device(device, [=] { return write_output(pool, current_pool.load()); });
}
API int cuDeviceSetMemPool(int device, void* pool) {
  return for_device(device, [=] { return for_pool(pool, [=] { return current_pool = pool, kSuccess; }); });
}
API int cuMemPoolCreate(void** pool, const void* properties) {
  if (!pool || !properties) return kInvalidValue;
  return *pool = Handles<Pool>::all().add(std::make_unique<Pool>()), kSuccess;
}
API int cuMemPoolDestroy(void* pool) {
  if (!Handles<Pool>::all().remove(pool)) return kInvalidValue;
  if (current_pool == pool) current_pool = &default_pool;
  return kSuccess;
}
API int cuMemPoolTrimTo(void* pool, size_t) { return accept_pool(pool); }
API int cuMemPoolSetAttribute(void* pool, int attribute_number, void* value) {
  return is_pool_attribute(attribute_number) && value ? accept_pool(pool) : kInvalidValue;
}
API int cuMemPoolGetAttribute(void* pool, int attribute_number, void* value) {
  if (!is_pool_attribute(attribute_number) || !value) return kInvalidValue;
  return for_pool(pool, [=] {
    uint64_t result = attribute_size(attribute_number) == sizeof(int) ? 1
                      : attribute_number == 4                         ? 0
                                                                      : Device::get().memory().used();
    return std::memcpy(value, &result, attribute_size(attribute_number)), kSuccess;
  });
}
API int cuMemPoolSetAccess(void* pool, const void*, size_t) { return accept_pool(pool); }
API int cuMemPoolGetAccess(int* flags, void* pool, const void*) {
  return for_pool(pool, [=] { return write_output(flags, 3); });  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
}
API int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, void* pool, void* stream) {
  if (!stream_of(stream)) return kInvalidHandle;
  return for_pool(pool, [=] { return cuMemAllocAsync(address, bytes, stream); });
}
API int cuDeviceGetGraphMemAttribute(int device, int, uint64_t* value) {
  return for_device(device, [=] { return write_output(value, 0); });
}
API int cuDeviceSetGraphMemAttribute(int, int, const uint64_t*) { return kSuccess; }
API int cuDeviceGraphMemTrim(int) { return kSuccess; }

// The pitch is a multiple of the texture alignment.
API int cuMemAllocPitch_v2(uint64_t* address, size_t* pitch, size_t width, size_t height, unsigned element) {
  const size_t row_bytes = (width + 511) / 512 * 512;
  if (!address || !pitch || !width || !height || row_bytes < width || height > SIZE_MAX / row_bytes) return kInvalidValue;
  if (element != 4 && element != 8 && element != 16) return kInvalidValue;
  return *pitch = row_bytes, cuMemAlloc_v2(address, row_bytes * height);
}

// Managed memory is accessible to host and device, so advice and prefetches are only checked.
namespace {

constexpr int kHostDevice = -1, kMinAdvice = 1, kMaxAdvice = 6;  // CUmem_advise
bool concerns_device(int advice) { return advice == 3 || advice >= 5; }  // preferred location, and accessing device

// CUmemLocation in one 64-bit register: the low half is its type (1: device, others: host), the high half its number.
int device_of(uint64_t location) { return (location & 0xffffffff) == 1 ? static_cast<int>(location >> 32) : kHostDevice; }
int check_managed(uint64_t at, size_t bytes, int device) {
  if (in_host_function()) return kNotPermitted;
  if (device != kHostDevice && device) return kInvalidDevice;
  return bytes && is_managed(at, bytes) ? kSuccess : kInvalidValue;
}

}  // namespace

API int cuMemAdvise(uint64_t at, size_t bytes, int advice, int device) {
  if (advice < kMinAdvice || advice > kMaxAdvice) return kInvalidValue;
  return check_managed(at, bytes, concerns_device(advice) ? device : 0);
}
API int cuMemAdvise_v2(uint64_t at, size_t bytes, int advice, uint64_t location) {
  return cuMemAdvise(at, bytes, advice, device_of(location));
}
API int cuMemPrefetchAsync(uint64_t at, size_t bytes, int device, void* stream) {
  if (!stream_of(stream)) return kInvalidHandle;
  return check_managed(at, bytes, device);
}
API int cuMemPrefetchAsync_v2(uint64_t at, size_t bytes, uint64_t location, unsigned flags, void* stream) {
  return flags ? kInvalidValue : cuMemPrefetchAsync(at, bytes, device_of(location), stream);
}
// flags: who accesses the memory from then on (CUmemAttach_flags); 0 bytes: all of the allocation.
API int cuStreamAttachMemAsync(void* stream, uint64_t at, size_t bytes, unsigned flags) {
  if (!stream_of(stream)) return kInvalidHandle;
  return flags == 1 || flags == 2 || flags == 4 ? check_managed(at, bytes ? bytes : 1, 0) : kInvalidValue;
}
API int cuFlushGPUDirectRDMAWrites(int, int) { return kSuccess; }

PER_THREAD(cuMemAllocFromPoolAsync, _ptsz);
PER_THREAD(cuMemPrefetchAsync_v2, _ptsz);
PER_THREAD(cuMemPrefetchAsync, _ptsz);
PER_THREAD(cuStreamAttachMemAsync, _ptsz);
