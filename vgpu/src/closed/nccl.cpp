// NCCL says which it is; what communicates is refused.
#include "../driver/api.h"

using namespace vgpu;

API int ncclGetVersion(int* version) { return *version = 22303, kSuccess; }
API const char* ncclGetErrorString(int) { return "not on the virtual GPU"; }
API const char* ncclGetLastError(void*) { return "not on the virtual GPU"; }
