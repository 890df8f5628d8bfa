// What differs between the runtimes: VERSION is 10000 for CUDA 10.0.  One small library for each name that frameworks open.
#define API extern "C" __attribute__((visibility("default")))

#include <cstdint>

extern "C" int vgpu_device_properties(char*, int version);
extern "C" int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned version, uint64_t flags, int* status);
extern "C" int cudaGraphInstantiateWithFlags(void**, void*, uint64_t flags);

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
API int cudaGraphInstantiate(void** made, void* graph, uint64_t flags_or_node) {
  return cudaGraphInstantiateWithFlags(made, graph, VERSION >= 12000 ? flags_or_node : 0);
}
