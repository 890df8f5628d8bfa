// Calls of libraries and their kernels (since CUDA 12.0), which are the same as modules and functions here.
#include <cstdio>
#include <string>

#include "api.h"
#include "handles.h"

using namespace vgpu;

API int cuModuleLoad(void** module, const char* file) {
  if (!module || !file) return kInvalidValue;
  std::FILE* stream = std::fopen(file, "rbe");
  if (!stream) return kFileNotFound;
  std::string image;
  char buffer[65536];
  for (size_t count; (count = std::fread(buffer, 1, sizeof buffer, stream)) > 0;) image.append(buffer, count);
  std::fclose(stream);
  return cuModuleLoadData(module, image.c_str());
}

API int cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  return cuModuleLoadData(library, image);
}
API int cuLibraryLoadFromFile(void** library, const char* file, int*, void**, unsigned, int*, void**, unsigned) {
  return cuModuleLoad(library, file);
}
API int cuLibraryUnload(void* library) { return cuModuleUnload(library); }
API int cuLibraryGetModule(void** module, void* library) {
  return find_alive<CudaModule>(library) ? write_output(module, library) : kInvalidHandle;
}
API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return cuModuleGetFunction(kernel, library, name);
}
API int cuLibraryGetKernelCount(unsigned* count, void* library) { return cuModuleGetFunctionCount(count, library); }
API int cuLibraryEnumerateKernels(void** kernels, unsigned capacity, void* library) {
  return cuModuleEnumerateFunctions(kernels, capacity, library);
}
API int cuLibraryGetGlobal(uint64_t* at, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(at, bytes, library, name);
}
API int cuLibraryGetManaged(uint64_t* at, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(at, bytes, library, name);
}

API int cuKernelGetFunction(void** function, void* kernel) {
  return find_alive<Kernel>(kernel) ? write_output(function, kernel) : kInvalidHandle;
}
API int cuKernelGetLibrary(void** library, void* kernel) { return cuFuncGetModule(library, kernel); }
API int cuKernelGetName(const char** name, void* kernel) { return cuFuncGetName(name, kernel); }
API int cuKernelGetAttribute(int* value, int number, void* kernel, int) { return cuFuncGetAttribute(value, number, kernel); }
API int cuKernelSetAttribute(int number, int value, void* kernel, int) { return cuFuncSetAttribute(kernel, number, value); }
API int cuKernelSetCacheConfig(void* kernel, int, int) { return find_alive<Kernel>(kernel) ? kSuccess : kInvalidHandle; }
API int cuFuncIsLoaded(int* state, void* function) {
  return find_alive<Kernel>(function) ? write_output(state, 1) : kInvalidHandle;
}
API int cuFuncLoad(void* function) { return find_alive<Kernel>(function) ? kSuccess : kInvalidHandle; }

API int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes) {
  const Kernel* kernel = find_alive<Kernel>(function);
  if (!kernel) return kInvalidHandle;
  const KernelSignature* signature = kernel->signature;
  if (!signature || index >= signature->parameters.size()) return kInvalidValue;
  if (offset) *offset = signature->parameters[index].offset;
  if (bytes) *bytes = signature->parameters[index].size;
  return kSuccess;
}
API int cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}
