// cuBLAS's questions that have an answer without a computation.
#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

API int cublasGetVersion_v2(void*, int* version) { return *version = Device::get().driver_version(), kSuccess; }
API int cublasGetVersion(void* handle, int* version) { return cublasGetVersion_v2(handle, version); }
API int cublasGetMathMode(void*, int* mode) { return *mode = 0, kSuccess; }
API int cublasGetAtomicsMode(void*, int* mode) { return *mode = 0, kSuccess; }
API size_t cublasLtGetVersion() { return static_cast<size_t>(Device::get().driver_version()); }
API const char* cublasGetStatusString(int status) { return status ? kNotSupportedText : "success"; }
API const char* cublasGetStatusName(int status) { return status ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS"; }
API const char* cublasLtGetStatusString(int status) { return cublasGetStatusString(status); }
API const char* cublasLtGetStatusName(int status) { return cublasGetStatusName(status); }
