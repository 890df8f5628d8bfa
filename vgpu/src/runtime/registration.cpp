// Registers the fatbins, kernels and variables that a program's start-up code announces to cudart.
#include "registration.h"

#include <map>
#include <vector>

#include "driver/unsupported_log.h"
#include "image/fatbin.h"
#include "sm80/loaded_cubin.h"

using namespace vgpu;

namespace {

// A registered container, which is loaded at its first use.
struct FatBinary {
  const void* image;
  CudaModule* module = nullptr;
  bool load_attempted = false;
};
struct DeviceSymbol {
  FatBinary* fat_binary;
  std::string name;
};
// A managed variable, and the host's pointer to it.
struct ManagedVariable {
  DeviceSymbol symbol;
  void** pointer;
};
struct Registry {
  std::mutex lock;
  std::vector<ManagedVariable> managed_variables;
  std::map<const void*, DeviceSymbol> kernels, variables;
  static Registry& get() {
    static Registry* registry = new Registry;
    return *registry;
  }
};

CudaModule* module_of(FatBinary& fat_binary) {
  use_primary_context();  // the call may be the program's first that needs a context
  if (!fat_binary.load_attempted) fat_binary.load_attempted = true, load_module(fat_binary.module, fat_binary.image);
  return fat_binary.module;
}

struct Wrapper {  // what code by nvcc passes: a magic number, a version and the container
  int magic, version;
  const void* container;
  void* reserved;
};

thread_local int last_error = 0;

}  // namespace

namespace vgpu {

Kernel* kernel_for_symbol(const void* host) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  auto entry = registry.kernels.find(host);
  if (entry == registry.kernels.end()) return nullptr;
  CudaModule* module = module_of(*entry->second.fat_binary);
  Kernel* kernel = nullptr;
  return module && !find_kernel(kernel, *module, entry->second.name) ? kernel : nullptr;
}

int find_launched_kernel(Kernel*& kernel, const void* host) {
  kernel = kernel_for_symbol(host);
  if (kernel) return kSuccess;
  Registry& registry = Registry::get();
  std::unique_lock<std::mutex> guard(registry.lock);
  auto entry = registry.kernels.find(host);
  const std::string name = entry == registry.kernels.end() ? "(a kernel that is not registered)" : entry->second.name;
  guard.unlock();
  const CudaResult fault = Device::get().sticky_error();
  return note_refused_launch(name), fault ? fault : kInvalidFunction;
}

const ModuleVariable* variable_for_symbol(const void* host) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  auto entry = registry.variables.find(host);
  if (entry == registry.variables.end()) return nullptr;
  CudaModule* module = module_of(*entry->second.fat_binary);
  return module && module->image ? module->image->variable(entry->second.name) : nullptr;
}

int set_last_error(int error) {
  if (error) last_error = error;
  return error;
}

}  // namespace vgpu

// The device takes the newest architecture for which the program has code.
API void** __cudaRegisterFatBinary(void* wrapper) {
  Device::get().register_arch(newest_code_arch(wrapper, sm80::kArchitecture));
  return reinterpret_cast<void**>(new FatBinary{static_cast<Wrapper*>(wrapper)->container});
}
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
// Sets the host's pointers to the managed variables of a container.
API char __cudaInitModule(void** fat_binary) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  for (const ManagedVariable& managed : registry.managed_variables) {
    if (managed.symbol.fat_binary != reinterpret_cast<FatBinary*>(fat_binary)) continue;
    const CudaModule* module = module_of(*managed.symbol.fat_binary);
    const ModuleVariable* variable = module && module->image ? module->image->variable(managed.symbol.name) : nullptr;
    if (variable) *managed.pointer = pointer(variable->address);
  }
  return 1;
}
API void __cudaRegisterFunction(void** fat_binary, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                                int*) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  registry.kernels[host] = DeviceSymbol{reinterpret_cast<FatBinary*>(fat_binary), name};
}
API void __cudaRegisterVar(void** fat_binary, char* host, char*, const char* name, int, size_t, int, int) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  registry.variables[host] = DeviceSymbol{reinterpret_cast<FatBinary*>(fat_binary), name};
}

API void __cudaRegisterManagedVar(void** fat_binary, void** host, char*, const char* name, int, size_t, int, int) {
  Registry& registry = Registry::get();
  std::lock_guard<std::mutex> guard(registry.lock);
  const DeviceSymbol symbol{reinterpret_cast<FatBinary*>(fat_binary), name};
  registry.variables[host] = symbol;
  registry.managed_variables.push_back({symbol, host});
}

// Returns the last error of this thread, or else the device's sticky error.
extern "C" int cudaPeekAtLastError();
API int cudaGetLastError() {
  int error = cudaPeekAtLastError();
  return last_error = 0, error;
}
API int cudaPeekAtLastError() { return last_error ? last_error : Device::get().sticky_error(); }
