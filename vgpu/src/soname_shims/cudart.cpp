// What differs between the runtimes: VERSION is 10000 for CUDA 10.0.  One small library for each name that frameworks open.
#define API extern "C" __attribute__((visibility("default")))

#include <cstddef>
#include <cstdint>

extern "C" int vgpu_device_properties(char*, int version);
extern "C" int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned version, uint64_t flags, int* status);
extern "C" int cudaGetDriverEntryPointByVersion_ptsz(const char*, void**, unsigned version, uint64_t flags, int* status);
extern "C" int cudaGraphInstantiateWithFlags(void**, void*, uint64_t flags);
extern "C" int cudaMemPrefetchAsync_v2(const void*, size_t, uint64_t location, unsigned flags, void* stream);
extern "C" int cudaMemAdvise_v2(const void*, size_t, int advice, uint64_t location);
extern "C" int cudaGraphAddDependencies_v2(void*, void* const* from, void* const* to, const void* edges, size_t count);
extern "C" int cudaStreamGetCaptureInfo_v3(void*, int*, uint64_t*, void**, const void***, const void**, size_t*);
extern "C" int cudaMemPrefetchAsync_v2_ptsz(const void*, size_t, uint64_t location, unsigned flags, void* stream);
extern "C" int cudaStreamGetCaptureInfo_v3_ptsz(void*, int*, uint64_t*, void**, const void***, const void**, size_t*);

API int cudaRuntimeGetVersion(int* version) { return *version = VERSION, 0; }
// In CUDA 12 this name fills the structure of CUDA 11, and _v2 that of 12; CUDA 13 has only this name, and a structure of 13.
API int cudaGetDeviceProperties(char* properties, int) {
  return vgpu_device_properties(properties, VERSION >= 12000 && VERSION < 13000 ? 11000 : VERSION);
}
API int cudaGetDeviceProperties_v2(char* properties, int) { return vgpu_device_properties(properties, 12000); }
// CUDA 12 changed the arguments of the next two functions under the same names.
API int cudaGetDriverEntryPoint(const char* name, void** at, uint64_t flags, int* status) {
  return cudaGetDriverEntryPointByVersion(name, at, VERSION, flags, VERSION >= 12000 ? status : nullptr);
}
API int cudaGetDriverEntryPoint_ptsz(const char* name, void** at, uint64_t flags, int* status) {
  return cudaGetDriverEntryPointByVersion_ptsz(name, at, VERSION, flags, VERSION >= 12000 ? status : nullptr);
}
// CUDA 13 gave these names the signatures of _v2 (or _v3).  struct cudaMemLocation is passed as its 64 bits.
#if VERSION >= 13000
API int cudaMemPrefetchAsync(const void* at, size_t bytes, uint64_t location, unsigned flags, void* stream) {
  return cudaMemPrefetchAsync_v2(at, bytes, location, flags, stream);
}
API int cudaMemAdvise(const void* at, size_t bytes, int advice, uint64_t location) {
  return cudaMemAdvise_v2(at, bytes, advice, location);
}
API int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, const void* edges, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, edges, count);
}
API int cudaStreamGetCaptureInfo(void* stream, int* state, uint64_t* id, void** graph, const void*** after, const void** edges,
                                 size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, state, id, graph, after, edges, count);
}
API int cudaMemPrefetchAsync_ptsz(const void* at, size_t bytes, uint64_t location, unsigned flags, void* stream) {
  return cudaMemPrefetchAsync_v2_ptsz(at, bytes, location, flags, stream);
}
API int cudaStreamGetCaptureInfo_ptsz(void* stream, int* state, uint64_t* id, void** graph, const void*** after,
                                      const void** edges, size_t* count) {
  return cudaStreamGetCaptureInfo_v3_ptsz(stream, state, id, graph, after, edges, count);
}
#else
uint64_t location_of(int device) { return device < 0 ? 2 : 1 | uint64_t(device) << 32; }  // 1: a device, 2: the host
API int cudaMemPrefetchAsync(const void* at, size_t bytes, int device, void* stream) {
  return cudaMemPrefetchAsync_v2(at, bytes, location_of(device), 0, stream);
}
API int cudaMemAdvise(const void* at, size_t bytes, int advice, int device) {
  return cudaMemAdvise_v2(at, bytes, advice, location_of(device));
}
API int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
API int cudaStreamGetCaptureInfo(void* stream, int* state, uint64_t* id) {
  return cudaStreamGetCaptureInfo_v3(stream, state, id, nullptr, nullptr, nullptr, nullptr);
}
API int cudaMemPrefetchAsync_ptsz(const void* at, size_t bytes, int device, void* stream) {
  return cudaMemPrefetchAsync_v2_ptsz(at, bytes, location_of(device), 0, stream);
}
API int cudaStreamGetCaptureInfo_ptsz(void* stream, int* state, uint64_t* id) {
  return cudaStreamGetCaptureInfo_v3_ptsz(stream, state, id, nullptr, nullptr, nullptr, nullptr);
}
#endif
API int cudaGraphInstantiate(void** made, void* graph, uint64_t flags_or_node) {
  return cudaGraphInstantiateWithFlags(made, graph, VERSION >= 12000 ? flags_or_node : 0);
}
