// Copies and fills of rectangles and boxes, and copies between peers (of which there is only one device).
// Each has a number for VGPU_CHECK=order (number_operation()), which counts wait_without_ordering() as no wait of the host.
#include "api.h"
#include "arrays.h"
#include "capture.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

enum Kind : unsigned { kHost = 1, kDevice = 2, kArray = 3, kUnified = 4 };  // CUmemorytype

// CUDA_MEMCPY2D: each side's offset, kind of memory, addresses, array and pitch; then the width and height.
struct Side {
  size_t x, y;
  unsigned kind;
  const void* host;
  uint64_t device;
  void* array;
  size_t pitch;
};
struct Rectangle {
  Side from, to;
  size_t width, height;
};

Memcpy3DSide to_3d(const Side& side) {
  return {side.x, side.y, 0, 0, side.kind, side.host, side.device, side.array, nullptr, side.pitch, 0};
}
Memcpy3DParams to_3d(const Rectangle& rectangle) {
  return {to_3d(rectangle.from), to_3d(rectangle.to), rectangle.width, rectangle.height, 1};
}

uint64_t base_address(const Memcpy3DSide& side) { return side.kind == kHost ? address(side.host) : side.device; }
size_t slice_bytes(const Memcpy3DSide& side) { return side.rows * side.pitch; }
uint64_t row_address(const Memcpy3DSide& side, size_t y, size_t z) {
  return base_address(side) + (side.z + z) * slice_bytes(side) + (side.y + y) * side.pitch + side.x;
}

// Returns whether a * b fits into 64 bits, with room for sums of such products.
bool fits_product(size_t a, size_t b) { return !a || b <= (SIZE_MAX >> 8) / a; }

// Returns whether rows fit into the pitch and slices into their rows, if there are several, without overflow.
bool has_valid_pitches(const Memcpy3DSide& side, const Memcpy3DParams& params) {
  if (side.kind < kHost || side.kind > kUnified || !base_address(side)) return false;
  if ((params.height > 1 || params.depth > 1) && (params.width > side.pitch || side.x > side.pitch - params.width))
    return false;
  if (params.depth > 1 && (params.height > side.rows || side.y > side.rows - params.height)) return false;
  return fits_product(side.rows, side.pitch) && fits_product(side.z + params.depth, slice_bytes(side)) &&
         fits_product(side.y + params.height, side.pitch);
}
// Returns whether the whole side is allocated; pageable host memory cannot be checked.
bool is_allocated(const Memcpy3DSide& side, const Memcpy3DParams& params) {
  const uint64_t begin = row_address(side, 0, 0), end = row_address(side, params.height - 1, params.depth - 1) + params.width;
  const DeviceMemory& memory = Device::get().memory();
  const bool is_host_memory = side.kind != kDevice && !memory.find(begin).end;
  return is_host_memory || (end >= begin && memory.covers(begin, end - begin));
}

// Replaces an array by its memory; layers become slices.  kInvalidHandle: the array's handle is invalid.
CudaResult resolve(Memcpy3DSide& side, const Memcpy3DParams& params) {
  if (side.kind != kArray) return kSuccess;
  const Array* array = find_alive<Array>(side.array);
  if (!array) return kInvalidHandle;
  const Texels& texels = array->texels;
  auto exceeds = [](size_t begin, size_t count, size_t size) { return begin > size || count > size - begin; };
  if (exceeds(side.x, params.width, texels.pitch) || exceeds(side.y, params.height, texels.height) ||
      exceeds(side.z, params.depth, texels.depth * texels.layers) || side.level)
    return kInvalidValue;
  if (side.x % texels.texel_bytes() || params.width % texels.texel_bytes()) return kInvalidValue;
  side.kind = kDevice, side.device = texels.at, side.pitch = texels.pitch, side.rows = texels.height;
  return kSuccess;
}
CudaResult resolve(Memcpy3DParams& params) {
  if (CudaResult error = resolve(params.from, params)) return error;
  return resolve(params.to, params);
}

CudaResult check(const Memcpy3DParams& params) {
  if (!params.width || !params.height || !params.depth) return kSuccess;
  for (const Memcpy3DSide* side : {&params.from, &params.to})
    if (!has_valid_pitches(*side, params) || !is_allocated(*side, params)) return kInvalidValue;
  return kSuccess;
}
int copy(const Memcpy3DParams& params, uint32_t operation) {
  for (size_t z = 0; z < params.depth; z++)
    for (size_t y = 0; y < params.height; y++)
      if (int error = copy_immediately({row_address(params.to, y, z), row_address(params.from, y, z), params.width}, operation))
        return error;
  return kSuccess;
}
bool is_in_pageable_memory(const Memcpy3DSide& side) { return side.kind != kDevice && is_pageable(base_address(side)); }

template <class T> int fill(uint64_t at, size_t pitch, T value, size_t width, size_t height) {
  return fill_now({at, pitch, value, sizeof value, width, height});
}
template <class T> int fill(void* stream, uint64_t at, size_t pitch, T value, size_t width, size_t height) {
  return fill_on(stream, {at, pitch, value, sizeof value, width, height});
}

}  // namespace

namespace vgpu {

CudaResult prepare_box_copy(Memcpy3DParams& params) {
  const CudaResult error = resolve(params);
  return error ? error : check(params);
}
int copy_box_now(const Memcpy3DParams& request) {
  if (CudaResult error = refuse_synchronous()) return error;
  const Stream& stream = default_stream();
  if (CudaResult error = wait_without_ordering(stream)) return error;
  Memcpy3DParams params = request;
  if (CudaResult error = prepare_box_copy(params)) return error;
  if (is_in_pageable_memory(params.from)) wait_for(stream);
  if (int error = copy(params, number_operation(stream))) return error;
  return is_awaited(base_address(params.from), base_address(params.to)) ? wait_for(stream) : kSuccess;
}
int copy_box_in_order(void* handle, const Memcpy3DParams& params) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return in_order(handle, [params, operation = number_operation(*stream)] { return copy(params, operation); });
}
int copy_box_on(void* handle, const Memcpy3DParams& request) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  Memcpy3DParams params = request;
  if (CudaResult error = prepare_box_copy(params)) return error;
  if (auto capture_result = capture(*stream, [=](void* graph_stream) { return copy_box_in_order(graph_stream, params); }))
    return *capture_result;
  if (!is_in_pageable_memory(params.from) && !is_in_pageable_memory(params.to)) return copy_box_in_order(handle, params);
  const uint32_t operation = number_operation(*stream);
  if (CudaResult error = wait_without_ordering(*stream)) return error;
  if (int error = copy(params, operation)) return error;
  return is_in_pageable_memory(params.to) ? wait_for(*stream) : kSuccess;
}

}  // namespace vgpu

API int cuMemcpyPeer(uint64_t to, void*, uint64_t from, void*, size_t n) { return cuMemcpy(to, from, n); }
API int cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t n, void* stream) {
  return copy_on(stream, {to, from, n});
}

API int cuMemcpy2D_v2(const Rectangle* params) { return params ? copy_box_now(to_3d(*params)) : kInvalidValue; }
API int cuMemcpy2DUnaligned_v2(const Rectangle* params) { return cuMemcpy2D_v2(params); }
API int cuMemcpy2DAsync_v2(const Rectangle* params, void* stream) {
  return params ? copy_box_on(stream, to_3d(*params)) : kInvalidValue;
}
API int cuMemcpy3D_v2(const Memcpy3DParams* params) { return params ? copy_box_now(*params) : kInvalidValue; }
API int cuMemcpy3DAsync_v2(const Memcpy3DParams* params, void* stream) {
  return params ? copy_box_on(stream, *params) : kInvalidValue;
}

API int cuMemsetD2D8_v2(uint64_t at, size_t pitch, uint8_t value, size_t w, size_t h) { return fill(at, pitch, value, w, h); }
API int cuMemsetD2D16_v2(uint64_t at, size_t pitch, uint16_t value, size_t w, size_t h) { return fill(at, pitch, value, w, h); }
API int cuMemsetD2D32_v2(uint64_t at, size_t pitch, uint32_t value, size_t w, size_t h) { return fill(at, pitch, value, w, h); }
API int cuMemsetD2D8Async(uint64_t at, size_t pitch, uint8_t value, size_t w, size_t h, void* stream) {
  return fill(stream, at, pitch, value, w, h);
}
API int cuMemsetD2D16Async(uint64_t at, size_t pitch, uint16_t value, size_t w, size_t h, void* stream) {
  return fill(stream, at, pitch, value, w, h);
}
API int cuMemsetD2D32Async(uint64_t at, size_t pitch, uint32_t value, size_t w, size_t h, void* stream) {
  return fill(stream, at, pitch, value, w, h);
}

PER_THREAD(cuMemcpy2DAsync_v2, _ptsz);
PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds);
PER_THREAD(cuMemcpy2D_v2, _ptds);
PER_THREAD(cuMemcpy3DAsync_v2, _ptsz);
PER_THREAD(cuMemcpy3D_v2, _ptds);
PER_THREAD(cuMemcpyPeer, _ptds);
PER_THREAD(cuMemcpyPeerAsync, _ptsz);
PER_THREAD(cuMemsetD2D16Async, _ptsz);
PER_THREAD(cuMemsetD2D16_v2, _ptds);
PER_THREAD(cuMemsetD2D32Async, _ptsz);
PER_THREAD(cuMemsetD2D32_v2, _ptds);
PER_THREAD(cuMemsetD2D8Async, _ptsz);
PER_THREAD(cuMemsetD2D8_v2, _ptds);
