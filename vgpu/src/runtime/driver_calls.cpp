// Calls of the runtime that forward to the driver: memory pools, captures, libraries; and calls that are not supported.
#include "driver/unsupported_log.h"
#include "registration.h"

using namespace vgpu;

extern "C" {
int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
int cuDeviceGetDefaultMemPool(void**, int);
int cuDeviceGetGraphMemAttribute(int, int, uint64_t*);
int cuDeviceSetGraphMemAttribute(int, int, const uint64_t*);
int cuMemPoolGetAttribute(void*, int, void*);
int cuMemPoolSetAttribute(void*, int, void*);
int cuMemPoolSetAccess(void*, const void*, size_t);
int cuMemPoolTrimTo(void*, size_t);
int cuMemAllocFromPoolAsync(uint64_t*, size_t, void*, void*);
int cuStreamAttachMemAsync(void*, uint64_t, size_t, unsigned);
int cuStreamGetDevice(void*, int*);
int cuStreamGetId(void*, uint64_t*);
int cuStreamCopyAttributes(void*, void*);
int cuStreamGetAttribute(void*, int, LaunchAttribute::Value*);
int cuStreamSetAttribute(void*, int, const void*);
int cuStreamBeginCapture_v2(void*, int);
int cuStreamBeginCaptureToGraph(void*, void*, void* const*, const void*, size_t, int);
int cuStreamEndCapture(void*, void**);
int cuLibraryLoadData(void**, const void*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryUnload(void*);
int cuLibraryLoadFromFile(void**, const char*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryGetKernel(void**, void*, const char*);
int cuLibraryGetKernelCount(unsigned*, void*);
int cuLibraryGetGlobal(uint64_t*, size_t*, void*, const char*);
int cuLibraryGetManaged(uint64_t*, size_t*, void*, const char*);
}

namespace {

constexpr uint64_t kPerThreadStreams = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

int refuse(const char* call) { return note_unsupported(call), set_last_error(kNotSupported); }

}  // namespace

API int cudaGetDriverEntryPointByVersion(const char* name, void** address, unsigned version, uint64_t flags, int* status) {
  return set_last_error(cuGetProcAddress_v2(name, address, static_cast<int>(version), flags, status));
}
// flags: 0 means the form that matches the caller's default stream.
API int cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** address, unsigned version, uint64_t flags, int* status) {
  return cudaGetDriverEntryPointByVersion(name, address, version, flags ? flags : kPerThreadStreams, status);
}
API int cudaDeviceEnablePeerAccess(int, unsigned) { return set_last_error(kInvalidDevice); }  // there is only one device

API int cudaDeviceGetDefaultMemPool(void** pool, int device) { return set_last_error(cuDeviceGetDefaultMemPool(pool, device)); }
API int cudaDeviceGetGraphMemAttribute(int device, int number, uint64_t* value) {
  return set_last_error(cuDeviceGetGraphMemAttribute(device, number, value));
}
API int cudaDeviceSetGraphMemAttribute(int device, int number, uint64_t* value) {
  return set_last_error(cuDeviceSetGraphMemAttribute(device, number, value));
}
API int cudaMallocFromPoolAsync(void** memory, size_t bytes, void* pool, void* stream) {
  return set_last_error(cuMemAllocFromPoolAsync(reinterpret_cast<uint64_t*>(memory), bytes, pool, stream));
}
API int cudaMemPoolGetAttribute(void* pool, int number, void* value) {
  return set_last_error(cuMemPoolGetAttribute(pool, number, value));
}
API int cudaMemPoolSetAttribute(void* pool, int number, void* value) {
  return set_last_error(cuMemPoolSetAttribute(pool, number, value));
}
API int cudaMemPoolSetAccess(void* pool, const void* access, size_t count) {
  return set_last_error(cuMemPoolSetAccess(pool, access, count));
}
API int cudaMemPoolTrimTo(void* pool, size_t bytes) { return set_last_error(cuMemPoolTrimTo(pool, bytes)); }

API int cudaStreamAttachMemAsync(void* stream, void* memory, size_t bytes, unsigned flags) {
  return set_last_error(cuStreamAttachMemAsync(stream, address(memory), bytes, flags));
}
API int cudaStreamGetDevice(void* stream, int* device) { return set_last_error(cuStreamGetDevice(stream, device)); }
API int cudaStreamGetId(void* stream, uint64_t* id) { return set_last_error(cuStreamGetId(stream, id)); }
API int cudaStreamCopyAttributes(void* to, void* from) { return set_last_error(cuStreamCopyAttributes(to, from)); }
API int cudaStreamGetAttribute(void* stream, int id, LaunchAttribute::Value* value) {
  return set_last_error(cuStreamGetAttribute(stream, id, value));
}
API int cudaStreamSetAttribute(void* stream, int id, const void* value) {
  return set_last_error(cuStreamSetAttribute(stream, id, value));
}
API int cudaStreamBeginCapture(void* stream, int mode) { return set_last_error(cuStreamBeginCapture_v2(stream, mode)); }
API int cudaStreamBeginCaptureToGraph(void* stream, void* graph, void* const* dependencies, const void* edges, size_t count,
                                      int mode) {
  return set_last_error(cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode));
}
API int cudaStreamEndCapture(void* stream, void** graph) { return set_last_error(cuStreamEndCapture(stream, graph)); }

API int cudaLibraryLoadData(void** library, const void* image, int* options, void** values, unsigned count,
                            int* library_options, void** library_values, unsigned library_count) {
  return set_last_error(
      cuLibraryLoadData(library, image, options, values, count, library_options, library_values, library_count));
}
API int cudaLibraryLoadFromFile(void** library, const char* file, int* options, void** values, unsigned count,
                                int* library_options, void** library_values, unsigned library_count) {
  return set_last_error(
      cuLibraryLoadFromFile(library, file, options, values, count, library_options, library_values, library_count));
}
API int cudaLibraryUnload(void* library) { return set_last_error(cuLibraryUnload(library)); }
API int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return set_last_error(cuLibraryGetKernel(kernel, library, name));
}
API int cudaLibraryGetKernelCount(unsigned* count, void* library) {
  return set_last_error(cuLibraryGetKernelCount(count, library));
}
API int cudaLibraryGetGlobal(uint64_t* address, size_t* bytes, void* library, const char* name) {
  return set_last_error(cuLibraryGetGlobal(address, bytes, library, name));
}
API int cudaLibraryGetManaged(uint64_t* address, size_t* bytes, void* library, const char* name) {
  return set_last_error(cuLibraryGetManaged(address, bytes, library, name));
}
API int cudaKernelSetAttributeForDevice(void* kernel, int number, int value, int) {
  return set_last_error(cuFuncSetAttribute(kernel, number, value));
}

#define REFUSED(name) \
  API int name() { return refuse(#name); }
REFUSED(cudaGraphAddNode)
REFUSED(cudaGraphConditionalHandleCreate)
REFUSED(cudaGraphDebugDotPrint)
REFUSED(cudaGraphNodeGetDependencies)
REFUSED(cudaGraphRetainUserObject)
REFUSED(cudaIpcCloseMemHandle)
REFUSED(cudaIpcGetEventHandle)
REFUSED(cudaIpcGetMemHandle)
REFUSED(cudaIpcOpenEventHandle)
REFUSED(cudaIpcOpenMemHandle)
REFUSED(cudaLibraryGetUnifiedFunction)
REFUSED(cudaProfilerInitialize)
REFUSED(cudaStreamUpdateCaptureDependencies)
REFUSED(cudaUserObjectCreate)
REFUSED(cudaUserObjectRelease)

PER_THREAD(cudaStreamBeginCapture, _ptsz);
PER_THREAD(cudaStreamBeginCaptureToGraph, _ptsz);
PER_THREAD(cudaStreamEndCapture, _ptsz);
PER_THREAD(cudaStreamUpdateCaptureDependencies, _ptsz);
PER_THREAD(cudaMallocFromPoolAsync, _ptsz);
PER_THREAD(cudaStreamAttachMemAsync, _ptsz);
PER_THREAD(cudaStreamCopyAttributes, _ptsz);
PER_THREAD(cudaStreamGetAttribute, _ptsz);
PER_THREAD(cudaStreamGetDevice, _ptsz);
PER_THREAD(cudaStreamGetId, _ptsz);
PER_THREAD(cudaStreamSetAttribute, _ptsz);
