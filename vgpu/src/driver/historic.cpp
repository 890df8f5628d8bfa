// Calls by the names that they had before CUDA 3.2 gave them a second form, as programs that look them up by name still do
// (Taichi among them).  Where the first form had addresses of 32 bits, there is no context here whose addresses are: it is
// refused as such a one is.
#include <algorithm>

#include "api.h"
#include "unsupported_log.h"

using namespace vgpu;

extern "C" {
int cuCtxCreate_v2(void**, unsigned, int);
int cuCtxDestroy_v2(void*);
int cuCtxPopCurrent_v2(void**);
int cuCtxPushCurrent_v2(void*);
int cuDeviceTotalMem_v2(size_t*, int);
int cuMemAllocHost_v2(void**, size_t);
int cuLinkCreate_v2(unsigned, const int*, void**, void**);
int cuLinkAddData_v2(void*, int, const void*, size_t, const char*, unsigned, const int*, void**);
int cuLinkAddFile_v2(void*, int, const char*, unsigned, const int*, void**);
int cuGraphInstantiate_v2(void**, void*, void*, char*, size_t);
int cuStreamBeginCapture_v2(void*, int);
}

API int cuCtxCreate(void** made, unsigned flags, int device) { return cuCtxCreate_v2(made, flags, device); }
API int cuCtxDestroy(void* context) { return cuCtxDestroy_v2(context); }
API int cuCtxPopCurrent(void** found) { return cuCtxPopCurrent_v2(found); }
API int cuCtxPushCurrent(void* wanted) { return cuCtxPushCurrent_v2(wanted); }
API int cuStreamDestroy(void* stream) { return cuStreamDestroy_v2(stream); }
API int cuEventDestroy(void* event) { return cuEventDestroy_v2(event); }
API int cuMemHostRegister(void* at, size_t bytes, unsigned flags) { return cuMemHostRegister_v2(at, bytes, flags); }
API int cuMemAllocHost(void** to, unsigned bytes) { return cuMemAllocHost_v2(to, bytes); }
API int cuLinkCreate(unsigned count, const int* options, void** values, void** state) {
  return cuLinkCreate_v2(count, options, values, state);
}
API int cuLinkAddData(void* state, int kind, const void* data, size_t bytes, const char* name, unsigned count,
                      const int* options, void** values) {
  return cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values);
}
API int cuLinkAddFile(void* state, int kind, const char* path, unsigned count, const int* options, void** values) {
  return cuLinkAddFile_v2(state, kind, path, count, options, values);
}
API int cuGraphInstantiate(void** made, void* graph, void* node, char* log, size_t bytes) {
  return cuGraphInstantiate_v2(made, graph, node, log, bytes);
}
API int cuStreamBeginCapture(void* stream) { return cuStreamBeginCapture_v2(stream, 0); }

// Sizes of 32 bits: what is more is told as the most.
API int cuDeviceTotalMem(unsigned* bytes, int device) {
  size_t all = 0;
  if (int error = cuDeviceTotalMem_v2(&all, device)) return error;
  return give(bytes, std::min<size_t>(all, UINT32_MAX));
}
API int cuMemGetInfo(unsigned* free, unsigned* total) {
  size_t left = 0, all = 0;
  if (!free || !total) return kInvalidValue;
  if (int error = cuMemGetInfo_v2(&left, &all)) return error;
  return *free = static_cast<unsigned>(std::min<size_t>(left, UINT32_MAX)), give(total, std::min<size_t>(all, UINT32_MAX));
}

#define ADDRESSES_OF_32_BITS(name) \
  API int name() { return kInvalidContext; }
ADDRESSES_OF_32_BITS(cuMemAlloc)
ADDRESSES_OF_32_BITS(cuMemAllocPitch)
ADDRESSES_OF_32_BITS(cuMemFree)
ADDRESSES_OF_32_BITS(cuMemGetAddressRange)
ADDRESSES_OF_32_BITS(cuMemHostGetDevicePointer)
ADDRESSES_OF_32_BITS(cuModuleGetGlobal)
ADDRESSES_OF_32_BITS(cuMemcpyHtoD)
ADDRESSES_OF_32_BITS(cuMemcpyHtoDAsync)
ADDRESSES_OF_32_BITS(cuMemcpyDtoH)
ADDRESSES_OF_32_BITS(cuMemcpyDtoHAsync)
ADDRESSES_OF_32_BITS(cuMemcpyDtoD)
ADDRESSES_OF_32_BITS(cuMemcpyDtoDAsync)
ADDRESSES_OF_32_BITS(cuMemcpy2D)
ADDRESSES_OF_32_BITS(cuMemcpy2DUnaligned)
ADDRESSES_OF_32_BITS(cuMemcpy2DAsync)
ADDRESSES_OF_32_BITS(cuMemcpy3D)
ADDRESSES_OF_32_BITS(cuMemcpy3DAsync)
ADDRESSES_OF_32_BITS(cuMemsetD8)
ADDRESSES_OF_32_BITS(cuMemsetD16)
ADDRESSES_OF_32_BITS(cuMemsetD32)
ADDRESSES_OF_32_BITS(cuMemsetD2D8)
ADDRESSES_OF_32_BITS(cuMemsetD2D16)
ADDRESSES_OF_32_BITS(cuMemsetD2D32)

// Memory and semaphores of graphics libraries: there are none here.
#define NO_GRAPHICS(name) \
  API int name() { return note_unsupported(#name), kNotSupported; }
NO_GRAPHICS(cuImportExternalMemory)
NO_GRAPHICS(cuExternalMemoryGetMappedBuffer)
NO_GRAPHICS(cuExternalMemoryGetMappedMipmappedArray)
NO_GRAPHICS(cuDestroyExternalMemory)
NO_GRAPHICS(cuImportExternalSemaphore)
NO_GRAPHICS(cuSignalExternalSemaphoresAsync)
NO_GRAPHICS(cuWaitExternalSemaphoresAsync)
NO_GRAPHICS(cuDestroyExternalSemaphore)
