// Streams are never captured: who asks is told so, who wants to begin is refused.  And what else streams are asked.
#include "api.h"
#include "streams.h"

using namespace vgpu;

namespace {

int none(void* stream, int* state) {  // CU_STREAM_CAPTURE_STATUS_NONE
  return stream_of(stream) ? give(state, 0) : kInvalidHandle;
}

}  // namespace

API int cuStreamIsCapturing(void* stream, int* state) { return none(stream, state); }
API int cuStreamGetCaptureInfo(void* stream, int* state, uint64_t*) { return none(stream, state); }
API int cuStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t*, void*, void*, size_t*) { return none(stream, state); }
API int cuStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t*, void*, void*, void*, size_t*) {
  return none(stream, state);
}
API int cuStreamBeginCapture_v2(void* stream, int) { return stream_of(stream) ? kNotSupported : kInvalidHandle; }
API int cuStreamEndCapture(void*, void** graph) { return give(graph, nullptr) ? kInvalidValue : kNotSupported; }
API int cuThreadExchangeStreamCaptureMode(int* mode) { return mode ? kSuccess : kInvalidValue; }
API int cuStreamGetDevice(void* stream, int* device) { return stream_of(stream) ? give(device, 0) : kInvalidHandle; }
API int cuStreamGetCtx_v2(void* stream, void** found, void** green) {
  if (!stream_of(stream)) return kInvalidHandle;
  return give(found, context()) || give(green, nullptr) ? kInvalidValue : kSuccess;
}
API int cuStreamCopyAttributes(void* to, void* from) { return stream_of(to) && stream_of(from) ? kSuccess : kInvalidHandle; }
API int cuStreamSetAttribute(void* stream, int, const void*) { return stream_of(stream) ? kSuccess : kInvalidHandle; }
API int cuStreamGetId(void* stream, uint64_t* id) { return stream_of(stream) ? give(id, address(stream)) : kInvalidHandle; }

API int cudaStreamGetCaptureInfo(void* stream, int* state, uint64_t*) { return none(stream, state); }
API int cudaStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t*, void*, void*, size_t*) { return none(stream, state); }
API int cudaStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t*, void*, void*, void*, size_t*) {
  return none(stream, state);
}
API int cudaThreadExchangeStreamCaptureMode(int* mode) { return mode ? kSuccess : kInvalidValue; }
