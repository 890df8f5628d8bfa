// cuGetProcAddress: finds the entry point of a plain name, in the form (_v2 etc.) of the caller's version of CUDA.
#include <dlfcn.h>

#include <cctype>
#include <string>

#include "api.h"

using namespace vgpu;

namespace {

// The CUDA version that introduced a newer form of a call, if after 6.5 (cudaTypedefs.h); older forms always exist.
struct ProcVersion {
  const char* name;
  int since;
};
constexpr ProcVersion kProcVersions[] = {
    {"cuCtxCreate_v3", 11040},
    {"cuCtxCreate_v4", 12050},
    {"cuCtxGetDevice_v2", 13000},
    {"cuCtxSynchronize_v2", 13000},
    {"cuDeviceGetUuid_v2", 11040},
    {"cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxReset_v2", 11000},
    {"cuDevicePrimaryCtxSetFlags_v2", 11000},
    {"cuEventElapsedTime_v2", 12080},
    {"cuGetProcAddress_v2", 12000},
    {"cuGraphAddDependencies_v2", 12030},
    {"cuGraphAddKernelNode_v2", 12000},
    {"cuGraphExecKernelNodeSetParams_v2", 12000},
    {"cuGraphExecUpdate_v2", 12000},
    {"cuGraphGetEdges_v2", 12030},
    {"cuGraphInstantiate_v2", 11000},
    {"cuGraphKernelNodeGetParams_v2", 12000},
    {"cuGraphKernelNodeSetParams_v2", 12000},
    {"cuIpcOpenMemHandle_v2", 11000},
    {"cuMemAdvise_v2", 12020},
    {"cuMemPrefetchAsync_v2", 12020},
    {"cuStreamBeginCapture_v2", 10010},
    {"cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCtx_v2", 12050},
    {"cuStreamUpdateCaptureDependencies_v2", 12030},
};

bool is_available(int version, const std::string& name) {
  for (const ProcVersion& form : kProcVersions)
    if (name == form.name) return version >= form.since;
  return true;
}

// Returns the handle of this library, which may have been loaded with RTLD_LOCAL.
void* own_library() {
  static void* handle = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(&own_library), &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  return handle;
}

void* find_symbol(const std::string& name) { return own_library() ? dlsym(own_library(), name.c_str()) : nullptr; }

void* find_form(const std::string& name, bool per_thread) {
  if (per_thread)
    for (const char* suffix : {"_ptsz", "_ptds"})
      if (void* symbol = find_symbol(name + suffix)) return symbol;
  return find_symbol(name);
}

void* find_procedure(const std::string& name, int version, bool per_thread) {
  if (name.compare(0, 2, "cu") != 0 || name.size() < 3 || !std::isupper(static_cast<unsigned char>(name[2]))) return nullptr;
  if (name == "cuGraphInstantiate" && version >= 12000) return find_symbol("cuGraphInstantiateWithFlags");
  for (int k = 4; k >= 2; k--) {
    const std::string newer = name + "_v" + std::to_string(k);
    if (void* symbol = is_available(version, newer) ? find_form(newer, per_thread) : nullptr) return symbol;
  }
  return find_form(name, per_thread);
}

}  // namespace

// flags: 2 for the forms with per-thread default streams.  status: nullptr, or receives 0 if found, otherwise 1.
API int cuGetProcAddress_v2(const char* name, void** procedure, int version, uint64_t flags, int* status) {
  if (!name || !procedure) return kInvalidValue;
  *procedure = find_procedure(name, version, flags & 2);
  if (status) *status = *procedure ? 0 : 1;
  return kSuccess;
}
API int cuGetProcAddress(const char* name, void** procedure, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, procedure, version, flags, nullptr);
}
