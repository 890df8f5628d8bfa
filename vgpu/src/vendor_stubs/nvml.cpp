// NVML, the library of device management, as far as frameworks ask it before they count devices.
#include <cstdio>
#include <cstring>

#include "driver/api.h"
#include "unsupported_call.h"

using namespace vgpu;

namespace {

constexpr int kNotFoundHere = 6, kNotSupportedHere = 3;  // nvml.h: NVML_ERROR_NOT_FOUND, NVML_ERROR_NOT_SUPPORTED

int words(char* to, unsigned length, const char* text) { return std::snprintf(to, length, "%s", text), kSuccess; }
int the_device(void** device) { return *device = context(), kSuccess; }

}  // namespace

API int nvmlInit() { return kSuccess; }
API int nvmlInit_v2() { return kSuccess; }
API int nvmlInitWithFlags(unsigned) { return kSuccess; }
API int nvmlShutdown() { return kSuccess; }
API const char* nvmlErrorString(int result) { return result ? kNotSupportedText : "Success"; }
API int nvmlSystemGetDriverVersion(char* text, unsigned length) { return words(text, length, "580.0"); }
API int nvmlSystemGetNVMLVersion(char* text, unsigned length) { return words(text, length, "13.580.0"); }
API int nvmlSystemGetCudaDriverVersion(int* version) { return cuDriverGetVersion(version); }
API int nvmlSystemGetCudaDriverVersion_v2(int* version) { return cuDriverGetVersion(version); }
API int nvmlDeviceGetCount(unsigned* count) { return *count = 1, kSuccess; }
API int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 1, kSuccess; }
API int nvmlDeviceGetHandleByIndex(unsigned index, void** device) { return index ? kNotFoundHere : the_device(device); }
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { return index ? kNotFoundHere : the_device(device); }
API int nvmlDeviceGetHandleByPciBusId(const char*, void** device) { return the_device(device); }
API int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) { return the_device(device); }
API int nvmlDeviceGetHandleByUUID(const char*, void** device) { return the_device(device); }
API int nvmlDeviceGetName(void*, char* text, unsigned length) { return words(text, length, kDeviceName); }
API int nvmlDeviceGetIndex(void*, unsigned* index) { return *index = 0, kSuccess; }
API int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  return *major = attribute(75), *minor = attribute(76), kSuccess;
}
API int nvmlDeviceGetMemoryInfo(void*, uint64_t* info) {  // total, free, used
  const DeviceMemory& memory = Device::get().memory();
  return info[0] = memory.total(), info[1] = memory.total() - memory.used(), info[2] = memory.used(), kSuccess;
}
API int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* generation) { return *generation = 3, kSuccess; }
API int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* width) { return *width = 16, kSuccess; }
API int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) { return *generation = 3, kSuccess; }
API int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) { return *width = 16, kSuccess; }
API int nvmlDeviceGetPcieSpeed(void*, unsigned* speed) { return *speed = 8000, kSuccess; }
API int nvmlDeviceGetNvLinkState(void*, unsigned, unsigned*) { return kNotSupportedHere; }
API int nvmlDeviceGetNvLinkCapability(void*, unsigned, int, unsigned*) { return kNotSupportedHere; }
API int nvmlDeviceGetFieldValues(void*, int, void*) { return kNotSupportedHere; }
API int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kNotSupportedHere; }
