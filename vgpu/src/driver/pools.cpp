// Pools of memory: by their names alone, for all memory is the device's, and free as soon as it is given back.  And what
// else is asked of memory.
#include "api.h"

using namespace vgpu;

namespace {
void* the_pool() { static char pool; return &pool; }
void* chosen = the_pool();  // of the device
// CUmemPool_attribute: 1 to 3 are words, whether memory may be used again; then the threshold, and what is held and used.
size_t size_of(int which) { return which >= 1 && which <= 3 ? sizeof(int) : sizeof(uint64_t); }
}  // namespace

API int cuDeviceGetDefaultMemPool(void** pool, int) { return *pool = the_pool(), kSuccess; }
API int cuDeviceGetMemPool(void** pool, int) { return *pool = chosen, kSuccess; }
API int cuDeviceSetMemPool(int, void* pool) { return chosen = pool, kSuccess; }
API int cuMemPoolCreate(void** pool, const void*) { return *pool = handle(), kSuccess; }
API int cuMemPoolDestroy(void* pool) {
  if (chosen == pool) chosen = the_pool();
  return kSuccess;
}
API int cuMemPoolTrimTo(void*, size_t) { return kSuccess; }
API int cuMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
API int cuMemPoolGetAttribute(void*, int which, void* value) {
  uint64_t told = size_of(which) == sizeof(int) ? 1 : which == 4 ? 0 : Device::get().memory().used();
  return std::memcpy(value, &told, size_of(which)), kSuccess;
}
API int cuMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
API int cuMemPoolGetAccess(int* flags, void*, const void*) { return *flags = 3, kSuccess; }  // reads and writes
API int cuMemAllocFromPoolAsync(uint64_t* to, size_t bytes, void*, void*) { return cuMemAlloc_v2(to, bytes); }
API int cuDeviceGetGraphMemAttribute(int, int, uint64_t* value) { return *value = 0, kSuccess; }
API int cuDeviceSetGraphMemAttribute(int, int, const uint64_t*) { return kSuccess; }
API int cuDeviceGraphMemTrim(int) { return kSuccess; }

// Rows that begin at what textures want, too.
API int cuMemAllocPitch_v2(uint64_t* to, size_t* pitch, size_t width, size_t height, unsigned) {
  const size_t rounded = (width + 511) / 512 * 512;
  if (!width || !height || rounded < width || height > SIZE_MAX / rounded) return kInvalidValue;
  return *pitch = rounded, cuMemAlloc_v2(to, rounded * height);
}

// Managed memory lies where everybody sees it.
API int cuMemAdvise(uint64_t, size_t, int, int) { return kSuccess; }
API int cuMemAdvise_v2(uint64_t, size_t, int, uint64_t) { return kSuccess; }
API int cuMemPrefetchAsync(uint64_t, size_t, int, void*) { return kSuccess; }
API int cuMemPrefetchAsync_v2(uint64_t, size_t, uint64_t, unsigned, void*) { return kSuccess; }
API int cuFlushGPUDirectRDMAWrites(int, int) { return kSuccess; }
