// cuDNN's queries, answered so that a program gets to the call that computes, which is refused: its name says more in an error.
#include <cstdio>
#include <cstring>

#include "driver/api.h"
#include "library_status.h"
#include "unsupported_call.h"

using namespace vgpu;

namespace {

// cudnnConvolutionFwdAlgoPerf_t and its siblings: the first algorithm, with success, in no time and memory.
int one_algorithm(int* returned, void* performance) { return *returned = 1, std::memset(performance, 0, 48), kSuccess; }
int no_bytes(size_t* bytes) { return *bytes = 0, kSuccess; }

}  // namespace

API const char* cudnnGetErrorString(int status) {
  const LibraryStatus& known = *library_status("cudnn");
  if (status == kSuccess) return "CUDNN_STATUS_SUCCESS";
  if (status == known.invalid_value) return "CUDNN_STATUS_BAD_PARAM";
  if (status == known.execution_failed) return "CUDNN_STATUS_EXECUTION_FAILED";
  if (status == known.not_initialized) return "CUDNN_STATUS_NOT_INITIALIZED";
  return kNotSupportedText;
}
API void cudnnGetLastErrorString(char* text, size_t length) { std::snprintf(text, length, "%s", kNotSupportedText); }
API size_t cudnnGetCudartVersion() { return 0; }

// Settings that frameworks ask for again, and must get.
API int cudnnGetConvolutionReorderType(void*, int* type) { return *type = 0, kSuccess; }
API int cudnnGetRNNMatrixMathType(void*, int* type) { return *type = 0, kSuccess; }
API int cudnnGetRNNBiasMode(void*, int* mode) { return *mode = 0, kSuccess; }
API int cudnnGetRNNPaddingMode(void*, int* mode) { return *mode = 0, kSuccess; }

API int cudnnGetConvolutionForwardAlgorithmMaxCount(void*, int* count) { return *count = 1, kSuccess; }
API int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(void*, int* count) { return *count = 1, kSuccess; }
API int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(void*, int* count) { return *count = 1, kSuccess; }
API int cudnnGetConvolutionForwardAlgorithm(void*, void*, void*, void*, void*, int, size_t, int* chosen) {
  return *chosen = 0, kSuccess;
}
API int cudnnGetConvolutionBackwardDataAlgorithm(void*, void*, void*, void*, void*, int, size_t, int* chosen) {
  return *chosen = 0, kSuccess;
}
API int cudnnGetConvolutionBackwardFilterAlgorithm(void*, void*, void*, void*, void*, int, size_t, int* chosen) {
  return *chosen = 0, kSuccess;
}
API int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int, int* returned, void* performance) {
  return one_algorithm(returned, performance);
}
API int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void*, void*, void*, void*, int, int* returned, void* performance) {
  return one_algorithm(returned, performance);
}
API int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void*, void*, void*, void*, int, int* returned,
                                                      void* performance) {
  return one_algorithm(returned, performance);
}

API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                                 size_t* bytes) {
  return no_bytes(bytes);
}
API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*, void*, void*,
                                                          size_t* bytes) {
  return no_bytes(bytes);
}
API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, size_t* bytes) {
  return no_bytes(bytes);
}
