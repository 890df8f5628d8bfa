// cuDNN, as far as a call must be answered before the one that computes is refused: its name says more to a reader.
#include <cstdio>
#include <cstring>

#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

namespace {

// The graph interface of cuDNN 8 and 9 describes before it computes; refused is the first operation, by its kind.
struct Descriptor { int type; };
const char* operation(int type) {  // cudnn.h: cudnnBackendDescriptorType_t
  switch (type) {
    case 10: return "cudnnBackendFinalize(CONVOLUTION_FORWARD)";
    case 11: return "cudnnBackendFinalize(CONVOLUTION_BACKWARD_FILTER)";
    case 12: return "cudnnBackendFinalize(CONVOLUTION_BACKWARD_DATA)";
    case 0:
    case 1:
    case 17: return nullptr;  // a pointwise mode, a convolution, a tensor
    default: return "cudnnBackendFinalize";
  }
}

// cudnnConvolutionFwdAlgoPerf_t and its siblings: the first algorithm, with success, in no time and memory.
int one_algorithm(int* returned, void* performance) { return *returned = 1, std::memset(performance, 0, 48), kSuccess; }
int no_bytes(size_t* bytes) { return *bytes = 0, kSuccess; }

}  // namespace

API const char* cudnnGetErrorString(int status) { return status ? kNotSupportedText : "CUDNN_STATUS_SUCCESS"; }
API void cudnnGetLastErrorString(char* text, size_t length) { std::snprintf(text, length, "%s", kNotSupportedText); }
API size_t cudnnGetCudartVersion() { return 0; }

API int cudnnBackendCreateDescriptor(int type, void** descriptor) { return *descriptor = new Descriptor{type}, kSuccess; }
API int cudnnBackendDestroyDescriptor(Descriptor* descriptor) { return delete descriptor, kSuccess; }
API int cudnnBackendFinalize(Descriptor* descriptor) {
  const char* refused = operation(descriptor->type);
  return refused ? report_unsupported(refused) : kSuccess;
}

// Settings that frameworks ask for again, and must get.
API int cudnnGetStream(void*, void** stream) { return *stream = nullptr, kSuccess; }
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
