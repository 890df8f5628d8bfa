// The runtime's memory, streams and events, which forward to the driver.
#include "box_copy.h"
#include "driver/streams.h"
#include "registration.h"

using namespace vgpu;

namespace {

enum Kind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kByAddress };  // cudaMemcpyKind
constexpr int kInvalidSymbol = 13, kInvalidDirection = 21, kInvalidPitch = 12;

bool is_valid_kind(int kind) { return kind >= kHostToHost && kind <= kByAddress; }
Copy make_copy(void* to, const void* from, size_t bytes, int kind) {
  return {address(to), address(from), bytes, kind == kHostToDevice || kind == kDeviceToDevice,
          kind == kDeviceToHost || kind == kDeviceToDevice};
}
int copy(void* to, const void* from, size_t bytes, int kind = kByAddress) {
  return set_last_error(is_valid_kind(kind) ? copy_now(make_copy(to, from, bytes, kind)) : kInvalidDirection);
}
int copy_async(void* stream, void* to, const void* from, size_t bytes, int kind = kByAddress) {
  return set_last_error(is_valid_kind(kind) ? copy_on(stream, make_copy(to, from, bytes, kind)) : kInvalidDirection);
}
template <class F> int allocate(void** output, size_t bytes, F allocate_bytes) {
  if (!output) return set_last_error(kInvalidValue);
  use_primary_context();
  uint64_t allocated = 0;
  int result = bytes ? allocate_bytes(&allocated, bytes) : kSuccess;
  return *output = pointer(allocated), set_last_error(result);
}

}  // namespace

API int cudaMalloc(void** output, size_t bytes) { return allocate(output, bytes, cuMemAlloc_v2); }
API int cudaMallocAsync(void** output, size_t bytes, void* stream) {
  return allocate(output, bytes, [=](uint64_t* at, size_t n) { return cuMemAllocAsync(at, n, stream); });
}
API int cudaMallocManaged(void** output, size_t bytes, unsigned flags) {
  uint64_t allocated = 0;
  const int result = output ? cuMemAllocManaged(&allocated, bytes, flags) : kInvalidValue;
  if (!result) *output = pointer(allocated);
  return set_last_error(result);
}
API int cudaMemAdvise_v2(const void* at, size_t bytes, int advice, uint64_t location) {
  return set_last_error(cuMemAdvise_v2(address(at), bytes, advice, location));
}
API int cudaMemPrefetchAsync_v2(const void* at, size_t bytes, uint64_t location, unsigned flags, void* stream) {
  return set_last_error(cuMemPrefetchAsync_v2(address(at), bytes, location, flags, stream));
}
API int cudaFree(void* at) { return use_primary_context(), set_last_error(cuMemFree_v2(address(at))); }
API int cudaFreeAsync(void* at, void* stream) { return set_last_error(at ? cuMemFreeAsync(address(at), stream) : kSuccess); }
API int cudaMallocHost(void** output, size_t bytes) { return set_last_error(cuMemHostAlloc(output, bytes, 0)); }
API int cudaHostAlloc(void** output, size_t bytes, unsigned) { return set_last_error(cuMemHostAlloc(output, bytes, 0)); }
API int cudaFreeHost(void* at) { return set_last_error(at ? cuMemFreeHost(at) : kSuccess); }
API int cudaHostRegister(void* at, size_t bytes, unsigned) { return set_last_error(cuMemHostRegister_v2(at, bytes, 0)); }
API int cudaHostUnregister(void* at) { return set_last_error(cuMemHostUnregister(at)); }
API int cudaHostGetDevicePointer(void** output, void* at, unsigned) {
  return set_last_error(is_pinned(at) ? write_output(output, at) : kInvalidValue);
}
API int cudaMemGetInfo(size_t* free, size_t* total) { return set_last_error(cuMemGetInfo_v2(free, total)); }
API int cudaMemcpy(void* to, const void* from, size_t n, int kind) { return copy(to, from, n, kind); }
API int cudaMemcpyAsync(void* to, const void* from, size_t n, int kind, void* stream) {
  return copy_async(stream, to, from, n, kind);
}
API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, void* stream) {
  return copy_async(stream, to, from, n);
}
API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { return copy(to, from, n); }
API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind) {
  if (!is_valid_kind(kind)) return set_last_error(kInvalidDirection);
  if (width > to_pitch || width > from_pitch) return set_last_error(kInvalidPitch);
  return set_last_error(copy_box_now(make_box_copy(to, to_pitch, from, from_pitch, width, height)));
}
API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind,
                          void* stream) {
  if (!is_valid_kind(kind)) return set_last_error(kInvalidDirection);
  if (width > to_pitch || width > from_pitch) return set_last_error(kInvalidPitch);
  return set_last_error(copy_box_on(stream, make_box_copy(to, to_pitch, from, from_pitch, width, height)));
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

// Finds the address of bytes [offset, offset + n) of a variable.
int find_in_variable(const void* host, size_t n, size_t offset, void** output) {
  const ModuleVariable* variable = variable_for_symbol(host);
  if (!variable) return kInvalidSymbol;
  if (offset > variable->size || n > variable->size - offset) return kInvalidValue;
  return *output = pointer(variable->address + offset), kSuccess;
}

}  // namespace

API int cudaGetSymbolAddress(void** output, const void* host) {
  return set_last_error(output ? find_in_variable(host, 0, 0, output) : kInvalidValue);
}
API int cudaMemcpyToSymbol(const void* host, const void* from, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = find_in_variable(host, n, offset, &at)) return set_last_error(error);
  return copy(at, from, n);
}
API int cudaMemcpyToSymbolAsync(const void* host, const void* from, size_t n, size_t offset, int, void* stream) {
  void* at = nullptr;
  if (int error = find_in_variable(host, n, offset, &at)) return set_last_error(error);
  return copy_async(stream, at, from, n);
}
API int cudaMemcpyFromSymbol(void* to, const void* host, size_t n, size_t offset, int) {
  void* at = nullptr;
  if (int error = find_in_variable(host, n, offset, &at)) return set_last_error(error);
  return copy(to, at, n);
}
API int cudaMemcpyFromSymbolAsync(void* to, const void* host, size_t n, size_t offset, int, void* stream) {
  void* at = nullptr;
  if (int error = find_in_variable(host, n, offset, &at)) return set_last_error(error);
  return copy_async(stream, to, at, n);
}
API int cudaGetSymbolSize(size_t* bytes, const void* host) {
  const ModuleVariable* variable = variable_for_symbol(host);
  return set_last_error(variable ? static_cast<int>(write_output(bytes, variable->size)) : kInvalidSymbol);
}
struct PointerAttributes {
  int kind, device;
  void *on_device, *on_host;
};
API int cudaPointerGetAttributes(PointerAttributes* attributes, const void* at) {
  if (!attributes) return set_last_error(kInvalidValue);
  const Allocation allocation = Device::get().memory().find(address(at));
  void* pointer = const_cast<void*>(at);  // kind: 0 unregistered, 1 host, 2 device, 3 managed
  const bool is_managed_memory = allocation.device && is_managed(address(at), 1);
  return *attributes = {is_managed_memory   ? 3
                        : allocation.device ? 2
                        : allocation.end    ? 1
                                            : 0,
                        0, allocation.end ? pointer : nullptr,
                        allocation.end && (is_managed_memory || !allocation.device) ? pointer : nullptr},
         kSuccess;
}

API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return use_primary_context(), set_last_error(cuStreamCreateWithPriority(stream, flags, priority));
}
API int cudaStreamCreate(void** stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
API int cudaStreamCreateWithFlags(void** stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
API int cudaStreamDestroy(void* stream) { return set_last_error(cuStreamDestroy_v2(stream)); }
API int cudaStreamSynchronize(void* stream) { return set_last_error(cuStreamSynchronize(stream)); }
API int cudaStreamQuery(void* stream) { return set_last_error(query_stream(stream, __builtin_return_address(0))); }
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
API int cudaEventQuery(void* event) { return set_last_error(query_event(event, __builtin_return_address(0))); }
API int cudaEventSynchronize(void* event) { return set_last_error(cuEventSynchronize(event)); }
API int cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  return set_last_error(cuEventElapsedTime(milliseconds, from, to));
}

PER_THREAD(cudaEventRecord, _ptsz);
PER_THREAD(cudaEventRecordWithFlags, _ptsz);
PER_THREAD(cudaFreeAsync, _ptsz);
PER_THREAD(cudaLaunchHostFunc, _ptsz);
PER_THREAD(cudaMallocAsync, _ptsz);
PER_THREAD(cudaMemcpy, _ptds);
PER_THREAD(cudaMemcpy2D, _ptds);
PER_THREAD(cudaMemcpy2DAsync, _ptsz);
PER_THREAD(cudaMemcpyAsync, _ptsz);
PER_THREAD(cudaMemcpyFromSymbol, _ptds);
PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz);
PER_THREAD(cudaMemcpyToSymbol, _ptds);
PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz);
PER_THREAD(cudaMemset, _ptds);
PER_THREAD(cudaMemset2D, _ptds);
PER_THREAD(cudaMemset2DAsync, _ptsz);
PER_THREAD(cudaMemsetAsync, _ptsz);
PER_THREAD(cudaStreamAddCallback, _ptsz);
PER_THREAD(cudaStreamGetFlags, _ptsz);
PER_THREAD(cudaStreamGetPriority, _ptsz);
PER_THREAD(cudaStreamIsCapturing, _ptsz);
PER_THREAD(cudaStreamQuery, _ptsz);
PER_THREAD(cudaStreamSynchronize, _ptsz);
PER_THREAD(cudaStreamWaitEvent, _ptsz);
PER_THREAD(cudaMemPrefetchAsync_v2, _ptsz);
