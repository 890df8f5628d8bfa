// NCCL tells its version; functions that communicate are refused (nccl.def).
#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

API int ncclGetVersion(int* version) { return *version = 22303, kSuccess; }
API const char* ncclGetErrorString(int status) { return status ? kNotSupportedText : "no error"; }
API const char* ncclGetLastError(void*) { return kNotSupportedText; }
