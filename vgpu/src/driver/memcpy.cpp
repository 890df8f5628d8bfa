// Copies and fills of rectangles and boxes, between devices of which there is one, and what else stands beside the plain ones.
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

Memcpy3DSide flat(const Side& of) { return {of.x, of.y, 0, 0, of.kind, of.host, of.device, of.array, nullptr, of.pitch, 0}; }
Memcpy3DParams flat(const Rectangle& of) { return {flat(of.from), flat(of.to), of.width, of.height, 1}; }

uint64_t base(const Memcpy3DSide& of) { return of.kind == kHost ? address(of.host) : of.device; }
size_t slice(const Memcpy3DSide& of) { return of.rows * of.pitch; }
uint64_t row(const Memcpy3DSide& of, size_t y, size_t z) {
  return base(of) + (of.z + z) * slice(of) + (of.y + y) * of.pitch + of.x;
}

bool multiplies(size_t a, size_t b) { return !a || b <= (SIZE_MAX >> 8) / a; }

// Rows lie in their pitch, and slices in their rows, where there is more than one.
bool sound(const Memcpy3DSide& of, const Memcpy3DParams& what) {
  if (of.kind < kHost || of.kind > kUnified || !base(of)) return false;
  if ((what.height > 1 || what.depth > 1) && (what.width > of.pitch || of.x > of.pitch - what.width)) return false;
  if (what.depth > 1 && (what.height > of.rows || of.y > of.rows - what.height)) return false;
  return multiplies(of.rows, of.pitch) && multiplies(of.z + what.depth, slice(of)) && multiplies(of.y + what.height, of.pitch);
}
// Of the device's memory all of it is allocated, before anything is copied.
bool allocated(const Memcpy3DSide& of, const Memcpy3DParams& what) {
  const uint64_t from = row(of, 0, 0), last = row(of, what.height - 1, what.depth - 1) + what.width;
  const DeviceMemory& memory = Device::get().memory();
  const bool anywhere = of.kind != kDevice && !memory.find(from).end;  // the host's, of which nothing is known
  return anywhere || (last >= from && memory.covers(from, last - from));
}

// A side that is an array, as the memory that it is: layers are slices, too.  kInvalidHandle: none that is alive.
CudaResult resolve(Memcpy3DSide& of, const Memcpy3DParams& what) {
  if (of.kind != kArray) return kSuccess;
  const Array* array = alive<Array>(of.array);
  if (!array) return kInvalidHandle;
  const Texels& all = array->texels;
  auto beyond = [](size_t from, size_t count, size_t size) { return from > size || count > size - from; };
  if (beyond(of.x, what.width, all.pitch) || beyond(of.y, what.height, all.height) ||
      beyond(of.z, what.depth, all.depth * all.layers) || of.level)
    return kInvalidValue;
  if (of.x % all.texel_bytes() || what.width % all.texel_bytes()) return kInvalidValue;
  of.kind = kDevice, of.device = all.at, of.pitch = all.pitch, of.rows = all.height;
  return kSuccess;
}
CudaResult resolve(Memcpy3DParams& what) {
  if (CudaResult wrong = resolve(what.from, what)) return wrong;
  return resolve(what.to, what);
}

CudaResult check(const Memcpy3DParams& what) {
  if (!what.width || !what.height || !what.depth) return kSuccess;
  for (const Memcpy3DSide* side : {&what.from, &what.to})
    if (!sound(*side, what) || !allocated(*side, what)) return kInvalidValue;
  return kSuccess;
}
int copy(const Memcpy3DParams& what, uint32_t operation) {
  for (size_t z = 0; z < what.depth; z++)
    for (size_t y = 0; y < what.height; y++)
      if (int error = copy_at_once({row(what.to, y, z), row(what.from, y, z), what.width}, operation)) return error;
  return kSuccess;
}
bool in_pageable_memory(const Memcpy3DSide& of) { return of.kind != kDevice && is_pageable(base(of)); }

template <class T> int fill(uint64_t at, size_t pitch, T value, size_t width, size_t height) {
  return fill_now({at, pitch, value, sizeof value, width, height});
}
template <class T> int fill(void* stream, uint64_t at, size_t pitch, T value, size_t width, size_t height) {
  return fill_on(stream, {at, pitch, value, sizeof value, width, height});
}

}  // namespace

namespace vgpu {

int copy_box_now(const Memcpy3DParams& asked) {
  if (CudaResult refused = refuse_legacy()) return refused;
  const Stream& legacy = *stream_of(nullptr);
  if (CudaResult broken = come_after(legacy)) return broken;
  Memcpy3DParams what = asked;
  if (CudaResult wrong = resolve(what)) return wrong;
  if (CudaResult wrong = check(what)) return wrong;
  if (in_pageable_memory(what.from)) wait_for(legacy);
  if (int error = copy(what, add_operation(legacy))) return error;
  return is_awaited(base(what.from), base(what.to)) ? wait_for(legacy) : kSuccess;
}
int copy_box_in_order(void* handle, const Memcpy3DParams& what) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return in_order(handle, [what, operation = add_operation(*stream)] { return copy(what, operation); });
}
int copy_box_on(void* handle, const Memcpy3DParams& asked) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  Memcpy3DParams what = asked;
  if (CudaResult wrong = resolve(what)) return wrong;
  if (CudaResult wrong = check(what)) return wrong;
  if (auto taken = capture(*stream, [=](void* later) { return copy_box_in_order(later, what); })) return *taken;
  if (!in_pageable_memory(what.from) && !in_pageable_memory(what.to)) return copy_box_in_order(handle, what);
  const uint32_t operation = add_operation(*stream);
  if (CudaResult broken = come_after(*stream)) return broken;
  if (int error = copy(what, operation)) return error;
  return in_pageable_memory(what.to) ? wait_for(*stream) : kSuccess;
}

}  // namespace vgpu

API int cuMemcpyPeer(uint64_t to, void*, uint64_t from, void*, size_t n) { return cuMemcpy(to, from, n); }
API int cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t n, void* stream) {
  return copy_on(stream, {to, from, n});
}

API int cuMemcpy2D_v2(const Rectangle* what) { return what ? copy_box_now(flat(*what)) : kInvalidValue; }
API int cuMemcpy2DUnaligned_v2(const Rectangle* what) { return cuMemcpy2D_v2(what); }
API int cuMemcpy2DAsync_v2(const Rectangle* what, void* stream) {
  return what ? copy_box_on(stream, flat(*what)) : kInvalidValue;
}
API int cuMemcpy3D_v2(const Memcpy3DParams* what) { return what ? copy_box_now(*what) : kInvalidValue; }
API int cuMemcpy3DAsync_v2(const Memcpy3DParams* what, void* stream) {
  return what ? copy_box_on(stream, *what) : kInvalidValue;
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
