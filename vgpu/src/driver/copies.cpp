// Copies and fills of rectangles, between devices of which there is one, and what else stands beside the plain ones.
#include "api.h"

using namespace vgpu;

namespace {

template <class T> int fill_rows(uint64_t at, size_t pitch, T value, size_t width, size_t height) {
  return filled_rows(at, pitch, &value, sizeof value, width, height);
}

// CUDA_MEMCPY2D: each side's offset, kind of memory (1 host, 2 device), addresses, array and pitch; then the width and height.
struct Side {
  size_t x, y;
  unsigned kind;
  const void* host;
  uint64_t device;
  void* array;
  size_t pitch;
  char* first() const {
    const void* from = kind == 1 ? host : pointer(device);
    return static_cast<char*>(const_cast<void*>(from)) + y * pitch + x;
  }
};
struct Rectangle { Side from, to; size_t width, height; };

// A slice of a box.
Side slice(const BoxSide& of, size_t number) {
  size_t skipped = (of.z + number) * of.rows * of.pitch;
  return {of.x, of.y, of.kind, pointer(address(of.host) + skipped), of.device + skipped, of.array, of.pitch};
}

}  // namespace

API int cuMemcpyPeer(uint64_t to, void*, uint64_t from, void*, size_t n) { return cuMemcpy(to, from, n); }
API int cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t n, void*) { return cuMemcpy(to, from, n); }

API int cuMemcpy2D_v2(const Rectangle* what) {
  if (what->from.kind > 2 || what->to.kind > 2) return kNotSupported;  // arrays of textures
  for (size_t row = 0; row < what->height; row++) {
    uint64_t to = address(what->to.first() + row * what->to.pitch), from = address(what->from.first() + row * what->from.pitch);
    if (int error = cuMemcpy(to, from, what->width)) return error;
  }
  return kSuccess;
}
API int cuMemcpy2DUnaligned_v2(const Rectangle* what) { return cuMemcpy2D_v2(what); }
API int cuMemcpy2DAsync_v2(const Rectangle* what, void*) { return cuMemcpy2D_v2(what); }

API int cuMemcpy3D_v2(const Box* what) {
  for (size_t k = 0; k < what->depth; k++) {
    const Rectangle one{slice(what->from, k), slice(what->to, k), what->width, what->height};
    if (int error = cuMemcpy2D_v2(&one)) return error;
  }
  return kSuccess;
}
API int cuMemcpy3DAsync_v2(const Box* what, void*) { return cuMemcpy3D_v2(what); }

API int cuMemsetD2D8_v2(uint64_t at, size_t pitch, uint8_t value, size_t w, size_t h) {
  return fill_rows(at, pitch, value, w, h);
}
API int cuMemsetD2D16_v2(uint64_t at, size_t pitch, uint16_t value, size_t w, size_t h) {
  return fill_rows(at, pitch, value, w, h);
}
API int cuMemsetD2D32_v2(uint64_t at, size_t pitch, uint32_t value, size_t w, size_t h) {
  return fill_rows(at, pitch, value, w, h);
}
API int cuMemsetD2D8Async(uint64_t at, size_t pitch, uint8_t value, size_t w, size_t h, void*) {
  return fill_rows(at, pitch, value, w, h);
}
API int cuMemsetD2D16Async(uint64_t at, size_t pitch, uint16_t value, size_t w, size_t h, void*) {
  return fill_rows(at, pitch, value, w, h);
}
API int cuMemsetD2D32Async(uint64_t at, size_t pitch, uint32_t value, size_t w, size_t h, void*) {
  return fill_rows(at, pitch, value, w, h);
}
