// Calls by the names that they had before their _v2 forms (most since CUDA 3.2), for programs that look these names up, such as
// Taichi; and calls for graphics.  Forms with 32-bit addresses fail with kInvalidContext, as no context has such addresses.
#include <algorithm>

#include "api.h"
#include "arrays.h"

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

API int cuCtxCreate(void** context, unsigned flags, int device) { return cuCtxCreate_v2(context, flags, device); }
API int cuCtxDestroy(void* context) { return cuCtxDestroy_v2(context); }
API int cuCtxPopCurrent(void** popped) { return cuCtxPopCurrent_v2(popped); }
API int cuCtxPushCurrent(void* context) { return cuCtxPushCurrent_v2(context); }
API int cuStreamDestroy(void* stream) { return cuStreamDestroy_v2(stream); }
API int cuEventDestroy(void* event) { return cuEventDestroy_v2(event); }
API int cuMemHostRegister(void* at, size_t bytes, unsigned flags) { return cuMemHostRegister_v2(at, bytes, flags); }
API int cuMemAllocHost(void** address, unsigned bytes) { return cuMemAllocHost_v2(address, bytes); }
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
API int cuGraphInstantiate(void** executable, void* graph, void* node, char* log, size_t bytes) {
  return cuGraphInstantiate_v2(executable, graph, node, log, bytes);
}
API int cuStreamBeginCapture(void* stream) { return cuStreamBeginCapture_v2(stream, 0); }

// Forms with 32-bit sizes: larger sizes are reported as the maximum.
API int cuDeviceTotalMem(unsigned* bytes, int device) {
  size_t total = 0;
  if (int error = cuDeviceTotalMem_v2(&total, device)) return error;
  return write_output(bytes, std::min<size_t>(total, UINT32_MAX));
}
API int cuMemGetInfo(unsigned* free, unsigned* total) {
  size_t free_bytes = 0, total_bytes = 0;
  if (!free || !total) return kInvalidValue;
  if (int error = cuMemGetInfo_v2(&free_bytes, &total_bytes)) return error;
  return *free = static_cast<unsigned>(std::min<size_t>(free_bytes, UINT32_MAX)),
         write_output(total, std::min<size_t>(total_bytes, UINT32_MAX));
}

// Descriptors of arrays, with 32-bit sizes.
struct OldArrayDescriptor {
  unsigned width, height, depth;
  Format format;
  unsigned channels, flags;
};
struct OldFlatDescriptor {
  unsigned width, height;
  Format format;
  unsigned channels;
};
API int cuArray3DCreate(Array** array, const OldArrayDescriptor* old) {
  if (!old) return kInvalidValue;
  const ArrayDescriptor descriptor{old->width, old->height, old->depth, old->format, old->channels, old->flags};
  return cuArray3DCreate_v2(array, &descriptor);
}
API int cuArrayCreate(Array** array, const OldFlatDescriptor* old) {
  if (!old) return kInvalidValue;
  const FlatDescriptor descriptor{old->width, old->height, old->format, old->channels};
  return cuArrayCreate_v2(array, &descriptor);
}
API int cuArray3DGetDescriptor(OldArrayDescriptor* old, void* array) {
  ArrayDescriptor d;
  if (int error = cuArray3DGetDescriptor_v2(&d, array)) return error;
  const auto size = [](size_t value) { return static_cast<unsigned>(value); };  // the limits of arrays are smaller
  return write_output(old, OldArrayDescriptor{size(d.width), size(d.height), size(d.depth), d.format, d.channels, d.flags});
}
API int cuArrayGetDescriptor(OldFlatDescriptor* old, void* array) {
  OldArrayDescriptor d;
  if (int error = cuArray3DGetDescriptor(&d, array)) return error;
  return write_output(old, OldFlatDescriptor{d.width, d.height, d.format, d.channels});
}
API int cuIpcOpenMemHandle(uint64_t*, const void*, unsigned) { return kNotSupported; }

#define ADDRESSES_OF_32_BITS(name) \
  API int name() { return kInvalidContext; }
ADDRESSES_OF_32_BITS(cuMemAlloc)
ADDRESSES_OF_32_BITS(cuMemAllocPitch)
ADDRESSES_OF_32_BITS(cuMemFree)
ADDRESSES_OF_32_BITS(cuMemGetAddressRange)
ADDRESSES_OF_32_BITS(cuMemHostGetDevicePointer)
ADDRESSES_OF_32_BITS(cuModuleGetGlobal)
ADDRESSES_OF_32_BITS(cuMemcpyAtoA)
ADDRESSES_OF_32_BITS(cuMemcpyAtoD)
ADDRESSES_OF_32_BITS(cuMemcpyAtoH)
ADDRESSES_OF_32_BITS(cuMemcpyAtoHAsync)
ADDRESSES_OF_32_BITS(cuMemcpyDtoA)
ADDRESSES_OF_32_BITS(cuMemcpyHtoA)
ADDRESSES_OF_32_BITS(cuMemcpyHtoAAsync)
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
