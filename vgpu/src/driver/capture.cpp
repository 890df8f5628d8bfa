// Streams are never captured: who asks is told so, who wants to begin is refused.  And what else streams are asked.
#include "api.h"

using namespace vgpu;

namespace {
int none(int* state) { return *state = 0, kSuccess; }  // CU_STREAM_CAPTURE_STATUS_NONE
}  // namespace

API int cuStreamGetCaptureInfo(void*, int* state, uint64_t*) { return none(state); }
API int cuStreamGetCaptureInfo_v2(void*, int* state, uint64_t*, void*, void*, size_t*) { return none(state); }
API int cuStreamGetCaptureInfo_v3(void*, int* state, uint64_t*, void*, void*, void*, size_t*) { return none(state); }
API int cuStreamBeginCapture_v2(void*, int) { return kNotSupported; }
API int cuStreamEndCapture(void*, void** graph) { return *graph = nullptr, kNotSupported; }
API int cuThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
API int cuStreamGetDevice(void*, int* device) { return *device = 0, kSuccess; }
API int cuStreamGetCtx_v2(void*, void** found, void** green) { return *found = context(), *green = nullptr, kSuccess; }
API int cuStreamCopyAttributes(void*, void*) { return kSuccess; }
API int cuStreamSetAttribute(void*, int, const void*) { return kSuccess; }
API int cuStreamGetId(void* stream, uint64_t* id) { return *id = address(stream), kSuccess; }
API int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) { return cuEventElapsedTime(milliseconds, from, to); }

API int cudaStreamGetCaptureInfo(void*, int* state, uint64_t*) { return none(state); }
API int cudaStreamGetCaptureInfo_v2(void*, int* state, uint64_t*, void*, void*, size_t*) { return none(state); }
API int cudaStreamGetCaptureInfo_v3(void*, int* state, uint64_t*, void*, void*, void*, size_t*) { return none(state); }
API int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
