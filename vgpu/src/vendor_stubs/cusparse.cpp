// The texts of cuSPARSE's statuses: programs ask for them after a call that is not supported.
#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

API const char* cusparseGetErrorString(int status) { return status ? kNotSupportedText : "success"; }
API const char* cusparseGetErrorName(int status) {
  return status ? "CUSPARSE_STATUS_NOT_SUPPORTED" : "CUSPARSE_STATUS_SUCCESS";
}
