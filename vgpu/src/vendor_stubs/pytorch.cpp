// What PyTorch asks of libraries that it links with and seldom uses: CUPTI, cuDNN 9, NVSHMEM.
#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

API int cuptiGetResultString(int, const char** text) { return write_output(text, kNotSupportedText); }
API void nvshmem_info_get_version(int* major, int* minor) { *major = *minor = 0; }
API int cuTensorMapEncodeTiled() { return report_unsupported("cuTensorMapEncodeTiled"), kNotSupported; }
API int cudnnSetCTCLossDescriptor_v9() { return report_unsupported("cudnnSetCTCLossDescriptor_v9"); }
