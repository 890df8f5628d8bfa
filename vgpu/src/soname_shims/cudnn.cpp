// What differs between the cuDNNs: VERSION as cudnn.h writes it, 7605 for 7.6.5, 99900 for 9.99.0.  Frameworks want at least the
// one that they were built with, of the same major number: so that of major 9 is newer than all that exist.
#include <cstddef>
#define API extern "C" __attribute__((visibility("default")))

// Programs look up cuDNN's other functions through this library, which finds them in libvgpu.so: a linker would drop the
// dependency on it without a reference.
extern "C" int cudnnCreate(void**);
API int (*const vgpu_linked)(void**) = cudnnCreate;

// Its status codes are those of its major version.
extern "C" void vgpu_set_cudnn_major(int);
__attribute__((constructor)) static void on_load() {
  vgpu_set_cudnn_major(VERSION >= 90000 ? VERSION / 10000 : VERSION / 1000);
}

API size_t cudnnGetVersion() { return VERSION; }
API int cudnnGetProperty(int part, int* value) {  // library_types.h: major, minor, patch
  constexpr int kMajor = VERSION >= 90000 ? 10000 : 1000;
  return *value = part == 0 ? VERSION / kMajor : part == 1 ? VERSION % kMajor / 100 : VERSION % 100, 0;
}
