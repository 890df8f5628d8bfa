// What differs between the runtimes: VERSION is 10000 for CUDA 10.0.  One small library for each name that frameworks open.
#define API extern "C" __attribute__((visibility("default")))

extern "C" int vgpu_device_properties(char*, int version);

API int cudaRuntimeGetVersion(int* version) { return *version = VERSION, 0; }
// CUDA 12 has the structure of 11 under the old name; 13 has its own under the one name that is left.
API int cudaGetDeviceProperties(char* properties, int) {
  return vgpu_device_properties(properties, VERSION >= 12000 && VERSION < 13000 ? 11000 : VERSION);
}
API int cudaGetDeviceProperties_v2(char* properties, int) { return vgpu_device_properties(properties, 12000); }
