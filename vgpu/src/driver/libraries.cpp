// Libraries, which CUDA has since 12.0 beside modules: the same here, for there is one context.  A kernel of theirs is a
// function, too.
#include <cstdio>
#include <string>

#include "api.h"
#include "handles.h"

using namespace vgpu;

API int cuModuleLoad(void** module, const char* file) {
  if (!module || !file) return kInvalidValue;
  std::FILE* from = std::fopen(file, "rbe");
  if (!from) return kFileNotFound;
  std::string image;
  char part[65536];
  for (size_t got; (got = std::fread(part, 1, sizeof part, from)) > 0;) image.append(part, got);
  std::fclose(from);
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
  return alive<CudaModule>(library) ? give(module, library) : kInvalidHandle;
}
API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return cuModuleGetFunction(kernel, library, name);
}
API int cuLibraryGetKernelCount(unsigned* count, void* library) { return cuModuleGetFunctionCount(count, library); }
API int cuLibraryEnumerateKernels(void** kernels, unsigned most, void* library) {
  return cuModuleEnumerateFunctions(kernels, most, library);
}
API int cuLibraryGetGlobal(uint64_t* at, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(at, bytes, library, name);
}
API int cuLibraryGetManaged(uint64_t* at, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(at, bytes, library, name);
}

API int cuKernelGetFunction(void** function, void* kernel) {
  return alive<Kernel>(kernel) ? give(function, kernel) : kInvalidHandle;
}
API int cuKernelGetLibrary(void** library, void* kernel) { return cuFuncGetModule(library, kernel); }
API int cuKernelGetName(const char** name, void* kernel) { return cuFuncGetName(name, kernel); }
API int cuKernelGetAttribute(int* value, int which, void* kernel, int) { return cuFuncGetAttribute(value, which, kernel); }
API int cuKernelSetAttribute(int which, int value, void* kernel, int) { return cuFuncSetAttribute(kernel, which, value); }
API int cuKernelSetCacheConfig(void* kernel, int, int) { return alive<Kernel>(kernel) ? kSuccess : kInvalidHandle; }
API int cuFuncIsLoaded(int* state, void* function) { return alive<Kernel>(function) ? give(state, 1) : kInvalidHandle; }
API int cuFuncLoad(void* function) { return alive<Kernel>(function) ? kSuccess : kInvalidHandle; }

API int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes) {
  const Kernel* kernel = alive<Kernel>(function);
  if (!kernel) return kInvalidHandle;
  const KernelSignature* of = kernel->signature;
  if (!of || index >= of->parameters.size()) return kInvalidValue;
  if (offset) *offset = of->parameters[index].offset;
  if (bytes) *bytes = of->parameters[index].size;
  return kSuccess;
}
API int cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}
