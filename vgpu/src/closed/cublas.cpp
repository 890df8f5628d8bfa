// cuBLAS's questions that have an answer without a computation, and the products that auto-tuners try.
#include "../driver/api.h"
#include "refusal.h"

using namespace vgpu;

namespace {

// An algorithm by its number is an auto-tuner's trial: its failure ends no stream, and saves it the check of what came out.
int product(const char* call, int algorithm) {
  constexpr int kDefault = -1, kDefaultTensorOp = 99;
  bool trial = algorithm != kDefault && algorithm != kDefaultTensorOp;
  return trial ? refuse(call) : refuse_on_stream(call);
}

}  // namespace

API int cublasGemmEx(void*, int, int, int, int, int, void*, void*, int, int, void*, int, int, void*, void*, int, int, int,
                     int algorithm) {
  return product("cublasGemmEx", algorithm);
}
API int cublasGemmBatchedEx(void*, int, int, int, int, int, void*, void*, int, int, void*, int, int, void*, void*, int, int,
                            int, int, int algorithm) {
  return product("cublasGemmBatchedEx", algorithm);
}
API int cublasGemmStridedBatchedEx(void*, int, int, int, int, int, void*, void*, int, int, int64_t, void*, int, int, int64_t,
                                   void*, void*, int, int, int64_t, int, int, int algorithm) {
  return product("cublasGemmStridedBatchedEx", algorithm);
}

API int cublasGetVersion_v2(void*, int* version) { return *version = Device::get().driver_version(), kSuccess; }
API int cublasGetVersion(void* handle, int* version) { return cublasGetVersion_v2(handle, version); }
API int cublasGetStream_v2(void*, void** stream) { return *stream = nullptr, kSuccess; }
API int cublasGetPointerMode_v2(void*, int* mode) { return *mode = 0, kSuccess; }  // of the host
API int cublasGetMathMode(void*, int* mode) { return *mode = 0, kSuccess; }
API int cublasGetAtomicsMode(void*, int* mode) { return *mode = 0, kSuccess; }
API size_t cublasLtGetVersion() { return static_cast<size_t>(Device::get().driver_version()); }
API const char* cublasGetStatusString(int status) { return status ? kText : "success"; }
API const char* cublasGetStatusName(int status) { return status ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS"; }
