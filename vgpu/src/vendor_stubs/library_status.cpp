// The status codes of the vendor libraries.
#include "library_status.h"

#include <atomic>

#include "driver/api.h"

namespace vgpu {
namespace {

constexpr int kUnknown = 999;  // the library has no such status

// The numbers: not supported, invalid value, execution failed, not initialized; from
// cudnn.h (7 and 8), cufft.h, curand.h, cusolver_common.h, cusparse.h, nccl.h
constexpr LibraryStatus kLibraries[] = {kCublasStatus,
                                        {"cudnn", 9, 3, 8, 1},
                                        {"cufft", 16, 4, 6, 7},
                                        {"curand", kUnknown, kUnknown, 201, 101},
                                        {"cusolver", 9, 3, 6, 1},
                                        {"cusparse", 10, 3, 6, 1},
                                        {"nccl", 5, 4, 1, kUnknown}};
constexpr LibraryStatus kCudnn9 = {"cudnn", 3000, 2000, 5000, 1001};  // cudnn_graph.h: since 9.0

std::atomic<int> cudnn_major{0};  // 0: nothing has loaded libcudnn.so.N

}  // namespace

const LibraryStatus* library_status(std::string_view call) {
  if (cudnn_major >= 9 && call.substr(0, kCudnn9.library.size()) == kCudnn9.library) return &kCudnn9;
  for (const LibraryStatus& status : kLibraries)
    if (call.substr(0, status.library.size()) == status.library) return &status;
  return nullptr;
}

}  // namespace vgpu

// The library of soname_shims/cudnn.cpp says its version when it is loaded.
API void vgpu_set_cudnn_major(int major) { vgpu::cudnn_major = major; }
