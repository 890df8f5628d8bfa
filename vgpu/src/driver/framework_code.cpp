// Finds the library that contains an address.
#include "framework_code.h"

#include <dlfcn.h>

#include <cstring>

namespace vgpu {
namespace {

// The beginnings of file names: PyTorch's allocators of device and of pinned memory, and TensorFlow's event manager.
constexpr const char* kLibraries[] = {"libc10_cuda.", "libtorch_cuda.", "libtensorflow", "_pywrap_tensorflow_internal."};

}  // namespace

bool is_framework_code(const void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const char* name = slash ? slash + 1 : info.dli_fname;
  for (const char* library : kLibraries)
    if (!std::strncmp(name, library, std::strlen(library))) return true;
  return false;
}

}  // namespace vgpu
