// cuGetProcAddress: a call by its plain name, in the form that it had in the caller's version of CUDA.
#include <dlfcn.h>

#include <cctype>
#include <cstring>
#include <string>

#include "api.h"

using namespace vgpu;

namespace {

// Since when a call has its second form, its third and its fourth, where that is later than CUDA 6.5 (cudaTypedefs.h); a
// form that is not here is older, and taken wherever it is there.
struct Forms { const char* name; int since[3]; };
constexpr int kNever = 1 << 30;
constexpr Forms kForms[] = {
    {"cuCtxCreate", {0, 11040, 12050}},
    {"cuCtxGetDevice", {13000, kNever, kNever}},
    {"cuCtxSynchronize", {13000, kNever, kNever}},
    {"cuDeviceGetUuid", {11040, kNever, kNever}},
    {"cuDevicePrimaryCtxRelease", {11000, kNever, kNever}},
    {"cuDevicePrimaryCtxReset", {11000, kNever, kNever}},
    {"cuDevicePrimaryCtxSetFlags", {11000, kNever, kNever}},
    {"cuEventElapsedTime", {12080, kNever, kNever}},
    {"cuGetProcAddress", {12000, kNever, kNever}},
    {"cuGraphAddDependencies", {12030, kNever, kNever}},
    {"cuGraphAddKernelNode", {12000, kNever, kNever}},
    {"cuGraphExecKernelNodeSetParams", {12000, kNever, kNever}},
    {"cuGraphExecUpdate", {12000, kNever, kNever}},
    {"cuGraphGetEdges", {12030, kNever, kNever}},
    {"cuGraphInstantiate", {11000, kNever, kNever}},
    {"cuGraphKernelNodeGetParams", {12000, kNever, kNever}},
    {"cuGraphKernelNodeSetParams", {12000, kNever, kNever}},
    {"cuIpcOpenMemHandle", {11000, kNever, kNever}},
    {"cuMemAdvise", {12020, kNever, kNever}},
    {"cuMemPrefetchAsync", {12020, kNever, kNever}},
    {"cuStreamBeginCapture", {10010, kNever, kNever}},
    {"cuStreamGetCaptureInfo", {11030, 12030, kNever}},
    {"cuStreamGetCtx", {12050, kNever, kNever}},
};

// The library that this lies in; whoever opened it may have kept it to himself.
void* own_library() {
  static void* handle = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(&own_library), &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  return handle;
}

void* exported(const std::string& name) { return own_library() ? dlsym(own_library(), name.c_str()) : nullptr; }

void* form(const std::string& name, bool per_thread) {
  if (per_thread)
    for (const char* suffix : {"_ptsz", "_ptds"})
      if (void* found = exported(name + suffix)) return found;
  return exported(name);
}

void* found(const std::string& name, int version, bool per_thread) {
  if (name.compare(0, 2, "cu") != 0 || name.size() < 3 || !std::isupper(static_cast<unsigned char>(name[2]))) return nullptr;
  if (name == "cuGraphInstantiate" && version >= 12000) return exported("cuGraphInstantiateWithFlags");
  const Forms* forms = nullptr;
  for (const Forms& one : kForms)
    if (name == one.name) forms = &one;
  for (int k = 4; k >= 2; k--)
    if (!forms ? k == 2 : version >= forms->since[k - 2])
      if (void* at = form(name + "_v" + std::to_string(k), per_thread)) return at;
  return form(name, per_thread);
}

}  // namespace

// flags: 2 for the forms whose default stream is each thread's own.  status, where wanted: 0 found, 1 not.
API int cuGetProcAddress_v2(const char* name, void** at, int version, uint64_t flags, int* status) {
  if (!name || !at) return kInvalidValue;
  *at = found(name, version, flags & 2);
  if (status) *status = *at ? 0 : 1;
  return kSuccess;
}
API int cuGetProcAddress(const char* name, void** at, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, at, version, flags, nullptr);
}
