// Allocations, copies and fills.
#include <cstdlib>
#include <cstring>

#include "api.h"

using namespace vgpu;

namespace {

int allocate(uint64_t* to, size_t bytes, bool written = false) {
  return guarded([&] {
    void* at = Device::get().memory().allocate(bytes, written);
    *to = address(at);
    return at ? kSuccess : bytes ? kOutOfMemory : kInvalidValue;
  });
}
int release(uint64_t at) { return !at || Device::get().memory().release(pointer(at)) ? kSuccess : kInvalidValue; }

int allocate_host(void** to, size_t bytes) {
  *to = bytes <= PTRDIFF_MAX ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
  if (!*to) return kOutOfMemory;
  return guarded([&] { return Device::get().memory().add(*to, bytes), kSuccess; });
}

bool holds(uint64_t at, size_t bytes) { return Device::get().memory().find(at).holds(at, at + bytes); }

// Of memory that may be the host's: nothing is known of that, but what begins in an allocation must end there.
bool fits(uint64_t at, size_t bytes) { return !Device::get().memory().find(at).end || holds(at, bytes); }

template <class T> int fill(uint64_t at, T value, size_t count) { return filled(at, &value, sizeof value, count); }

bool of_device(uint64_t at) { return Device::get().memory().find(at).device; }

}  // namespace

namespace vgpu {

Result copied(uint64_t to, uint64_t from, size_t bytes, bool to_device, bool from_device) {
  Device& device = Device::get();
  if (device.sticky() != kSuccess) return device.sticky();
  if (!bytes) return kSuccess;
  if (!(to_device ? holds : fits)(to, bytes) || !(from_device ? holds : fits)(from, bytes)) return kInvalidValue;
  std::memmove(pointer(to), pointer(from), bytes);
  return device.memory().copied(to, from, bytes), kSuccess;
}
Result filled(uint64_t at, const void* value, size_t size, size_t count) {
  if (count > SIZE_MAX / size || (count && !holds(at, count * size))) return kInvalidValue;
  for (size_t k = 0; k < count; k++) std::memcpy(static_cast<char*>(pointer(at)) + k * size, value, size);
  Device::get().memory().wrote(at, count * size);
  return kSuccess;
}
Result filled_rows(uint64_t at, size_t pitch, const void* value, size_t size, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++)
    if (Result error = filled(at + row * pitch, value, size, width)) return error;
  return kSuccess;
}

}  // namespace vgpu

API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Memory& memory = Device::get().memory();
  return *total = memory.total(), *free = memory.total() - memory.used(), kSuccess;
}
API int cuMemAlloc_v2(uint64_t* to, size_t bytes) { return allocate(to, bytes); }
API int cuMemAllocAsync(uint64_t* to, size_t bytes, void*) { return allocate(to, bytes); }
// The host writes it without a call.
API int cuMemAllocManaged(uint64_t* to, size_t bytes, unsigned) { return allocate(to, bytes, true); }
API int cuMemFree_v2(uint64_t at) { return release(at); }
API int cuMemFreeAsync(uint64_t at, void*) { return release(at); }
API int cuMemHostAlloc(void** to, size_t bytes, unsigned) { return allocate_host(to, bytes); }
API int cuMemAllocHost_v2(void** to, size_t bytes) { return allocate_host(to, bytes); }
API int cuMemFreeHost(void* at) { return Device::get().memory().remove(at), std::free(at), kSuccess; }
API int cuMemHostRegister_v2(void* at, size_t bytes, unsigned) { return Device::get().memory().add(at, bytes), kSuccess; }
API int cuMemHostUnregister(void* at) { return Device::get().memory().remove(at), kSuccess; }
API int cuMemHostGetDevicePointer_v2(uint64_t* to, void* at, unsigned) { return *to = address(at), kSuccess; }
API int cuMemHostGetFlags(unsigned* flags, void*) { return *flags = 0, kSuccess; }
API int cuPointerSetAttribute(const void*, int, uint64_t) { return kSuccess; }
// Another process has no way to this one's memory.
API int cuIpcGetMemHandle(void*, uint64_t) { return kNotSupported; }
API int cuIpcOpenMemHandle_v2(uint64_t*, const void*, unsigned) { return kNotSupported; }
API int cuIpcCloseMemHandle(uint64_t) { return kNotSupported; }
API int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t at) {
  Extent found = Device::get().memory().find(at);
  if (!found.end) return kInvalidValue;
  if (base) *base = found.begin;
  if (bytes) *bytes = found.end - found.begin;
  return kSuccess;
}

API int cuMemcpy(uint64_t to, uint64_t from, size_t n) { return copied(to, from, n, false, false); }
API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void*) { return copied(to, from, n, false, false); }
API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t n) { return copied(to, address(from), n, true, false); }
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void*) { return copied(to, address(from), n, true, false); }
API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t n) { return copied(address(to), from, n, false, true); }
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void*) { return copied(address(to), from, n, false, true); }
API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n) { return copied(to, from, n, true, true); }
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void*) { return copied(to, from, n, true, true); }

API int cuMemsetD8_v2(uint64_t at, uint8_t value, size_t n) { return fill(at, value, n); }
API int cuMemsetD8Async(uint64_t at, uint8_t value, size_t n, void*) { return fill(at, value, n); }
API int cuMemsetD16_v2(uint64_t at, uint16_t value, size_t n) { return fill(at, value, n); }
API int cuMemsetD16Async(uint64_t at, uint16_t value, size_t n, void*) { return fill(at, value, n); }
API int cuMemsetD32_v2(uint64_t at, uint32_t value, size_t n) { return fill(at, value, n); }
API int cuMemsetD32Async(uint64_t at, uint32_t value, size_t n, void*) { return fill(at, value, n); }

PER_THREAD(cuMemcpy, _ptds);
PER_THREAD(cuMemcpyAsync, _ptsz);
PER_THREAD(cuMemcpyHtoD_v2, _ptds);
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz);
PER_THREAD(cuMemcpyDtoH_v2, _ptds);
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz);
PER_THREAD(cuMemcpyDtoD_v2, _ptds);
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz);
PER_THREAD(cuMemsetD8_v2, _ptds);
PER_THREAD(cuMemsetD8Async, _ptsz);
PER_THREAD(cuMemsetD32_v2, _ptds);
PER_THREAD(cuMemsetD32Async, _ptsz);

// CUpointer_attribute: 1 context, 2 kind of memory (1 host, 2 device), 3 and 4 addresses, 8 managed, 9 ordinal.
API int cuPointerGetAttribute(void* out, int which, uint64_t at) {
  bool device = of_device(at);
  switch (which) {
    case 1: *static_cast<void**>(out) = context(); return device ? kSuccess : kInvalidValue;
    case 2: *static_cast<unsigned*>(out) = device ? 2 : 1; return kSuccess;
    case 3: case 4: *static_cast<uint64_t*>(out) = at; return kSuccess;
    case 8: case 9: *static_cast<int*>(out) = 0; return kSuccess;
    default: return kInvalidValue;
  }
}
API int cuPointerGetAttributes(unsigned count, const int* which, void** out, uint64_t at) {
  bool device = of_device(at);
  for (unsigned k = 0; k < count; k++) {
    if (which[k] == 1) *static_cast<void**>(out[k]) = device ? context() : nullptr;
    else if (which[k] == 2) *static_cast<unsigned*>(out[k]) = device ? 2 : 0;
    else if (which[k] == 3) *static_cast<uint64_t*>(out[k]) = device ? at : 0;
    else if (which[k] == 4) *static_cast<uint64_t*>(out[k]) = 0;
    else *static_cast<int*>(out[k]) = 0;
  }
  return kSuccess;
}
