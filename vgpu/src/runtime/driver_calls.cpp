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

int refuse(const char* call) { return note_unsupported(call), set_last_error(kNotSupported); }

}  // namespace

API int cudaGetDriverEntryPointByVersion(const char* name, void** address, unsigned version, uint64_t flags, int* status) {
  return set_last_error(cuGetProcAddress_v2(name, address, static_cast<int>(version), flags, status));
}
API int cudaDeviceEnablePeerAccess(int, unsigned) { return set_last_error(kInvalidDevice); }  // there is only one device

API int cudaDeviceGetDefaultMemPool(void** pool, int device) { return set_last_error(cuDeviceGetDefaultMemPool(pool, device)); }
API int cudaDeviceGetGraphMemAttribute(int device, int number, uint64_t* value) {
  return set_last_error(cuDeviceGetGraphMemAttribute(device, number, value));
}
API int cudaDeviceSetGraphMemAttribute(int device, int number, uint64_t* value) {
  return set_last_error(cuDeviceSetGraphMemAttribute(device, number, value));
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
