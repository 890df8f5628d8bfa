// The runtime's memory, streams and events: the driver's under other names.
#include "registration.h"

using namespace vgpu;

namespace {

enum Kind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kByAddress };  // cudaMemcpyKind
int copy(void* to, const void* from, size_t bytes, int kind = kByAddress) {
  bool to_device = kind == kHostToDevice || kind == kDeviceToDevice;
  bool from_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  return remember(copied(address(to), address(from), bytes, to_device, from_device));
}
int set(void* at, int value, size_t bytes) {
  uint8_t byte = static_cast<uint8_t>(value);
  return remember(filled(address(at), &byte, 1, bytes));
}
int allocate(void** to, size_t bytes) {
  uint64_t at = 0;
  int result = bytes ? cuMemAlloc_v2(&at, bytes) : kSuccess;
  return *to = pointer(at), remember(result);
}

}  // namespace

API int cudaMalloc(void** to, size_t bytes) { return allocate(to, bytes); }
API int cudaMallocAsync(void** to, size_t bytes, void*) { return allocate(to, bytes); }
API int cudaMallocManaged(void** to, size_t bytes, unsigned flags) {
  uint64_t at = 0;
  int result = bytes ? cuMemAllocManaged(&at, bytes, flags) : kSuccess;
  return *to = pointer(at), remember(result);
}
API int cudaFree(void* at) { return remember(cuMemFree_v2(address(at))); }
API int cudaFreeAsync(void* at, void*) { return remember(cuMemFree_v2(address(at))); }
API int cudaMallocHost(void** to, size_t bytes) { return remember(cuMemHostAlloc(to, bytes, 0)); }
API int cudaHostAlloc(void** to, size_t bytes, unsigned) { return remember(cuMemHostAlloc(to, bytes, 0)); }
API int cudaFreeHost(void* at) { return cuMemFreeHost(at); }
API int cudaHostRegister(void* at, size_t bytes, unsigned) { return cuMemHostRegister_v2(at, bytes, 0); }
API int cudaHostUnregister(void* at) { return cuMemHostUnregister(at); }
API int cudaHostGetDevicePointer(void** to, void* at, unsigned) { return *to = at, kSuccess; }
API int cudaMemGetInfo(size_t* free, size_t* total) { return cuMemGetInfo_v2(free, total); }
API int cudaMemcpy(void* to, const void* from, size_t n, int kind) { return copy(to, from, n, kind); }
API int cudaMemcpyAsync(void* to, const void* from, size_t n, int kind, void*) {
  return copy(to, from, n, kind);
}
API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, void*) { return copy(to, from, n); }
API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { return copy(to, from, n); }
API int cudaMemcpy2D(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width, size_t height, int) {
  for (size_t row = 0; row < height; row++)
    if (int error = copy(to + row * to_pitch, from + row * from_pitch, width)) return error;
  return kSuccess;
}
API int cudaMemcpy2DAsync(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width, size_t height, int kind,
                          void*) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
API int cudaMemset2D(char* at, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++) set(at + row * pitch, value, width);
  return kSuccess;
}
API int cudaMemset2DAsync(char* at, size_t pitch, int value, size_t width, size_t height, void*) {
  return cudaMemset2D(at, pitch, value, width, height);
}
API int cudaMemset(void* at, int value, size_t n) { return set(at, value, n); }
API int cudaMemsetAsync(void* at, int value, size_t n, void*) { return set(at, value, n); }

API int cudaGetSymbolAddress(void** to, const void* host) {
  const Symbol* found = variable_of(host);
  if (!found) return remember(13);
  return *to = pointer(found->address), kSuccess;
}
API int cudaMemcpyToSymbol(const void* host, const void* from, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = cudaGetSymbolAddress(&at, host)) return error;
  return copy(static_cast<char*>(at) + offset, from, n);
}
API int cudaMemcpyToSymbolAsync(const void* host, const void* from, size_t n, size_t offset, int kind, void*) {
  return cudaMemcpyToSymbol(host, from, n, offset, kind);
}
API int cudaMemcpyFromSymbol(void* to, const void* host, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = cudaGetSymbolAddress(&at, host)) return error;
  return copy(to, static_cast<char*>(at) + offset, n);
}
API int cudaMemcpyFromSymbolAsync(void* to, const void* host, size_t n, size_t offset, int kind, void*) {
  return cudaMemcpyFromSymbol(to, host, n, offset, kind);
}
API int cudaGetSymbolSize(size_t* bytes, const void* host) {
  const Symbol* found = variable_of(host);
  return found ? (*bytes = found->size, kSuccess) : remember(13);
}
struct PointerAttributes { int kind, device; void *on_device, *on_host; };
API int cudaPointerGetAttributes(PointerAttributes* to, const void* at) {
  bool device = Device::get().memory().find(address(at)).device;
  return *to = {device ? 2 : 0, 0, device ? const_cast<void*>(at) : nullptr, nullptr}, kSuccess;
}

API int cudaStreamCreate(void** stream) { return *stream = handle(), kSuccess; }
API int cudaStreamCreateWithFlags(void** stream, unsigned) { return *stream = handle(), kSuccess; }
API int cudaStreamCreateWithPriority(void** stream, unsigned, int) { return *stream = handle(), kSuccess; }
API int cudaStreamDestroy(void*) { return kSuccess; }
API int cudaStreamSynchronize(void*) { return remember(Device::get().sticky()); }
API int cudaStreamQuery(void*) { return Device::get().sticky(); }
API int cudaStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
API int cudaStreamGetPriority(void*, int* priority) { return *priority = 0, kSuccess; }
API int cudaStreamGetFlags(void*, unsigned* flags) { return *flags = 0, kSuccess; }
API int cudaStreamIsCapturing(void*, int* state) { return *state = 0, kSuccess; }
API int cudaStreamAddCallback(void* stream, void (*f)(void*, int, void*), void* data, unsigned flags) {
  return cuStreamAddCallback(stream, f, data, flags);
}
API int cudaLaunchHostFunc(void*, void (*f)(void*), void* data) { return call_later(f, data), kSuccess; }
API int cudaEventCreate(void** event) { return *event = handle(), kSuccess; }
API int cudaEventCreateWithFlags(void** event, unsigned) { return *event = handle(), kSuccess; }
API int cudaEventDestroy(void*) { return kSuccess; }
API int cudaEventRecord(void*, void*) { return kSuccess; }
API int cudaEventRecordWithFlags(void*, void*, unsigned) { return kSuccess; }
API int cudaEventQuery(void*) { return Device::get().sticky(); }
API int cudaEventSynchronize(void*) { return Device::get().sticky(); }
API int cudaEventElapsedTime(float* milliseconds, void* from, void* to) { return cuEventElapsedTime(milliseconds, from, to); }
