// The runtime's memory, streams and events: the driver's under other names.
#include "registration.h"

using namespace vgpu;

namespace {

enum Kind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kByAddress };  // cudaMemcpyKind
constexpr int kInvalidSymbol = 13, kInvalidDirection = 21, kInvalidPitch = 12;

bool known(int kind) { return kind >= kHostToHost && kind <= kByAddress; }
Copy described(void* to, const void* from, size_t bytes, int kind) {
  return {address(to), address(from), bytes, kind == kHostToDevice || kind == kDeviceToDevice,
          kind == kDeviceToHost || kind == kDeviceToDevice};
}
int copy(void* to, const void* from, size_t bytes, int kind = kByAddress) {
  return set_last_error(known(kind) ? copy_now(described(to, from, bytes, kind)) : kInvalidDirection);
}
int copy_in(void* stream, void* to, const void* from, size_t bytes, int kind = kByAddress) {
  return set_last_error(known(kind) ? copy_on(stream, described(to, from, bytes, kind)) : kInvalidDirection);
}
Memcpy3DParams box(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
  auto side = [](const void* at, size_t pitch) {
    return Memcpy3DSide{0, 0, 0, 0, 4, nullptr, address(at), nullptr, nullptr, pitch, 0};
  };
  return {side(from, from_pitch), side(to, to_pitch), width, height, 1};
}
template <class F> int allocate(void** to, size_t bytes, F how) {
  if (!to) return set_last_error(kInvalidValue);
  use_primary_context();
  uint64_t at = 0;
  int result = bytes ? how(&at, bytes) : kSuccess;
  return *to = pointer(at), set_last_error(result);
}

}  // namespace

API int cudaMalloc(void** to, size_t bytes) { return allocate(to, bytes, cuMemAlloc_v2); }
API int cudaMallocAsync(void** to, size_t bytes, void* stream) {
  return allocate(to, bytes, [=](uint64_t* at, size_t n) { return cuMemAllocAsync(at, n, stream); });
}
API int cudaMallocManaged(void** to, size_t bytes, unsigned flags) {
  uint64_t at = 0;
  const int result = to ? cuMemAllocManaged(&at, bytes, flags) : kInvalidValue;
  if (!result) *to = pointer(at);
  return set_last_error(result);
}
API int cudaMemAdvise(const void* at, size_t bytes, int advice, int device) {
  return set_last_error(cuMemAdvise(address(at), bytes, advice, device));
}
API int cudaMemPrefetchAsync(const void* at, size_t bytes, int device, void* stream) {
  return set_last_error(cuMemPrefetchAsync(address(at), bytes, device, stream));
}
API int cudaFree(void* at) { return use_primary_context(), set_last_error(cuMemFree_v2(address(at))); }  // of none, too
API int cudaFreeAsync(void* at, void* stream) { return set_last_error(at ? cuMemFreeAsync(address(at), stream) : kSuccess); }
API int cudaMallocHost(void** to, size_t bytes) { return set_last_error(cuMemHostAlloc(to, bytes, 0)); }
API int cudaHostAlloc(void** to, size_t bytes, unsigned) { return set_last_error(cuMemHostAlloc(to, bytes, 0)); }
API int cudaFreeHost(void* at) { return set_last_error(at ? cuMemFreeHost(at) : kSuccess); }
API int cudaHostRegister(void* at, size_t bytes, unsigned) { return set_last_error(cuMemHostRegister_v2(at, bytes, 0)); }
API int cudaHostUnregister(void* at) { return set_last_error(cuMemHostUnregister(at)); }
API int cudaHostGetDevicePointer(void** to, void* at, unsigned) {
  return set_last_error(pinned(at) ? give(to, at) : kInvalidValue);
}
API int cudaMemGetInfo(size_t* free, size_t* total) { return set_last_error(cuMemGetInfo_v2(free, total)); }
API int cudaMemcpy(void* to, const void* from, size_t n, int kind) { return copy(to, from, n, kind); }
API int cudaMemcpyAsync(void* to, const void* from, size_t n, int kind, void* stream) {
  return copy_in(stream, to, from, n, kind);
}
API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, void* stream) {
  return copy_in(stream, to, from, n);
}
API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { return copy(to, from, n); }
API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind) {
  if (!known(kind)) return set_last_error(kInvalidDirection);
  if (width > to_pitch || width > from_pitch) return set_last_error(kInvalidPitch);
  return set_last_error(copy_box_now(box(to, to_pitch, from, from_pitch, width, height)));
}
API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind,
                          void* stream) {
  if (!known(kind)) return set_last_error(kInvalidDirection);
  if (width > to_pitch || width > from_pitch) return set_last_error(kInvalidPitch);
  return set_last_error(copy_box_on(stream, box(to, to_pitch, from, from_pitch, width, height)));
}
API int cudaMemset2D(void* at, size_t pitch, int value, size_t width, size_t height) {
  return set_last_error(fill_now({address(at), pitch, static_cast<uint8_t>(value), 1, width, height}));
}
API int cudaMemset2DAsync(void* at, size_t pitch, int value, size_t width, size_t height, void* stream) {
  return set_last_error(fill_on(stream, {address(at), pitch, static_cast<uint8_t>(value), 1, width, height}));
}
API int cudaMemset(void* at, int value, size_t n) { return cudaMemset2D(at, 0, value, n, 1); }
API int cudaMemsetAsync(void* at, int value, size_t n, void* stream) { return cudaMemset2DAsync(at, 0, value, n, 1, stream); }

namespace {

// The place of `n` bytes of a variable, `offset` bytes into it.
int place(const void* host, size_t n, size_t offset, void** at) {
  const ModuleVariable* found = variable_for_symbol(host);
  if (!found) return kInvalidSymbol;
  if (offset > found->size || n > found->size - offset) return kInvalidValue;
  return *at = pointer(found->address + offset), kSuccess;
}

}  // namespace

API int cudaGetSymbolAddress(void** to, const void* host) { return set_last_error(to ? place(host, 0, 0, to) : kInvalidValue); }
API int cudaMemcpyToSymbol(const void* host, const void* from, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = place(host, n, offset, &at)) return set_last_error(error);
  return copy(at, from, n);
}
API int cudaMemcpyToSymbolAsync(const void* host, const void* from, size_t n, size_t offset, int, void* stream) {
  void* at = nullptr;
  if (int error = place(host, n, offset, &at)) return set_last_error(error);
  return copy_in(stream, at, from, n);
}
API int cudaMemcpyFromSymbol(void* to, const void* host, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = place(host, n, offset, &at)) return set_last_error(error);
  return copy(to, at, n);
}
API int cudaMemcpyFromSymbolAsync(void* to, const void* host, size_t n, size_t offset, int, void* stream) {
  void* at = nullptr;
  if (int error = place(host, n, offset, &at)) return set_last_error(error);
  return copy_in(stream, to, at, n);
}
API int cudaGetSymbolSize(size_t* bytes, const void* host) {
  const ModuleVariable* found = variable_for_symbol(host);
  return set_last_error(found ? static_cast<int>(give(bytes, found->size)) : kInvalidSymbol);
}
struct PointerAttributes {
  int kind, device;
  void *on_device, *on_host;
};
API int cudaPointerGetAttributes(PointerAttributes* to, const void* at) {
  if (!to) return set_last_error(kInvalidValue);
  const Allocation found = Device::get().memory().find(address(at));
  void* own = const_cast<void*>(at);  // kind: 0 unregistered, 1 the host's, 2 the device's, 3 managed
  const bool both = found.device && managed(address(at), 1);
  return *to = {both           ? 3
                : found.device ? 2
                : found.end    ? 1
                               : 0,
                0, found.end ? own : nullptr, found.end && (both || !found.device) ? own : nullptr},
         kSuccess;
}

API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return use_primary_context(), set_last_error(cuStreamCreateWithPriority(stream, flags, priority));
}
API int cudaStreamCreate(void** stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
API int cudaStreamCreateWithFlags(void** stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
API int cudaStreamDestroy(void* stream) { return set_last_error(cuStreamDestroy_v2(stream)); }
API int cudaStreamSynchronize(void* stream) { return set_last_error(cuStreamSynchronize(stream)); }
API int cudaStreamQuery(void* stream) { return set_last_error(cuStreamQuery(stream)); }
API int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return set_last_error(cuStreamWaitEvent(stream, event, flags));
}
API int cudaStreamGetPriority(void* stream, int* priority) { return set_last_error(cuStreamGetPriority(stream, priority)); }
API int cudaStreamGetFlags(void* stream, unsigned* flags) { return set_last_error(cuStreamGetFlags(stream, flags)); }
API int cudaStreamIsCapturing(void* stream, int* state) { return set_last_error(cuStreamIsCapturing(stream, state)); }
API int cudaStreamAddCallback(void* stream, void (*f)(void*, int, void*), void* data, unsigned flags) {
  return set_last_error(cuStreamAddCallback(stream, f, data, flags));
}
API int cudaLaunchHostFunc(void* stream, void (*f)(void*), void* data) {
  return set_last_error(cuLaunchHostFunc(stream, f, data));
}
API int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return use_primary_context(), set_last_error(cuEventCreate(event, flags));
}
API int cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
API int cudaEventDestroy(void* event) { return set_last_error(cuEventDestroy_v2(event)); }
API int cudaEventRecord(void* event, void* stream) { return set_last_error(cuEventRecord(event, stream)); }
API int cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return set_last_error(cuEventRecordWithFlags(event, stream, flags));
}
API int cudaEventQuery(void* event) { return set_last_error(cuEventQuery(event)); }
API int cudaEventSynchronize(void* event) { return set_last_error(cuEventSynchronize(event)); }
API int cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  return set_last_error(cuEventElapsedTime(milliseconds, from, to));
}
