// The status codes with which the vendor libraries answer a call that fails.
#pragma once
#include <string_view>

namespace vgpu {

struct LibraryStatus {
  std::string_view library;  // with which the names of its calls begin
  int not_supported, invalid_value, execution_failed, not_initialized;
};

constexpr LibraryStatus kCublasStatus = {"cublas", 15, 7, 13, 1};  // cublas_api.h: cublasStatus_t

// The codes of the library of this call; nullptr: the library is not known here.
const LibraryStatus* library_status(std::string_view call);

}  // namespace vgpu
