// Registers the fatbins, kernels and variables that a program's start-up code announces to cudart.
#include "registration.h"

#include <map>
#include <vector>

#include "image/fatbin.h"
#include "sm80/loaded_cubin.h"

using namespace vgpu;

namespace {

// A container; loaded when something of it is first used.
struct FatBinary {
  const void* image;
  CudaModule* module = nullptr;
  bool load_attempted = false;
};
struct Name {
  FatBinary* fat_binary;
  std::string name;
};
// A managed variable: the host has a pointer to it.
struct ManagedVariable {
  Name of;
  void** pointer;
};
struct Registry {
  std::mutex lock;
  std::vector<ManagedVariable> managed;
  std::map<const void*, Name> kernels, variables;
  static Registry& get() {
    static Registry* one = new Registry;
    return *one;
  }
};

CudaModule* module_of(FatBinary& fat_binary) {
  if (!fat_binary.load_attempted) fat_binary.load_attempted = true, load(fat_binary.module, fat_binary.image);
  return fat_binary.module;
}

struct Wrapper {  // what nvcc's code hands over: a magic number, a version, the container
  int magic, version;
  const void* container;
  void* more;
};

thread_local int last_error = 0;

}  // namespace

namespace vgpu {

Kernel* kernel_for_symbol(const void* host) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  auto found = r.kernels.find(host);
  if (found == r.kernels.end()) return nullptr;
  CudaModule* module = module_of(*found->second.fat_binary);
  Kernel* kernel = nullptr;
  return module && !find_kernel(kernel, *module, found->second.name) ? kernel : nullptr;
}

const ModuleVariable* variable_for_symbol(const void* host) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  auto found = r.variables.find(host);
  if (found == r.variables.end()) return nullptr;
  CudaModule* module = module_of(*found->second.fat_binary);
  return module && module->image ? module->image->variable(found->second.name) : nullptr;
}

int set_last_error(int error) {
  if (error) last_error = error;
  return error;
}

}  // namespace vgpu

API void** __cudaRegisterFatBinary(void* wrapper) {
  Device::get().register_arch(newest_code_arch(wrapper, sm80::kArchitecture));
  return reinterpret_cast<void**>(new FatBinary{static_cast<Wrapper*>(wrapper)->container});
}
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
// Of what it has registered, the host's pointers to managed variables are filled in now.
API char __cudaInitModule(void** fat_binary) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  for (const ManagedVariable& one : r.managed) {
    if (one.of.fat_binary != reinterpret_cast<FatBinary*>(fat_binary)) continue;
    const CudaModule* module = module_of(*one.of.fat_binary);
    const ModuleVariable* found = module && module->image ? module->image->variable(one.of.name) : nullptr;
    if (found) *one.pointer = pointer(found->address);
  }
  return 1;
}
API void __cudaRegisterFunction(void** fat_binary, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                                int*) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  r.kernels[host] = Name{reinterpret_cast<FatBinary*>(fat_binary), name};
}
API void __cudaRegisterVar(void** fat_binary, char* host, char*, const char* name, int, size_t, int, int) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  r.variables[host] = Name{reinterpret_cast<FatBinary*>(fat_binary), name};
}

API void __cudaRegisterManagedVar(void** fat_binary, void** host, char*, const char* name, int, size_t, int, int) {
  Registry& r = Registry::get();
  std::lock_guard<std::mutex> hold(r.lock);
  const Name of{reinterpret_cast<FatBinary*>(fat_binary), name};
  r.variables[host] = of;
  r.managed.push_back({of, host});
}

// After a fault of the device there is none other any more.
extern "C" int cudaPeekAtLastError();
API int cudaGetLastError() {
  int error = cudaPeekAtLastError();
  return last_error = 0, error;
}
API int cudaPeekAtLastError() { return last_error ? last_error : Device::get().sticky_error(); }
