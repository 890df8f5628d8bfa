// Modules, functions and launches.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api.h"
#include "capture.h"
#include "core/error.h"
#include "handles.h"
#include "image/fatbin.h"
#include "ptx/loaded_module.h"
#include "settings.h"
#include "sm80/loaded_cubin.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace vgpu {

// Machine code of sm_80 runs on all devices 8.x.
CodeRequest code_request(int arch) {
  const bool reads_machine_code = arch / 10 == sm80::kArchitecture / 10;
  return {arch, reads_machine_code ? sm80::kArchitecture : 0, settings().code == "sass"};
}

CudaResult load(CudaModule*& module, const void* image) {
  if (!image) return kInvalidValue;
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return translate_exceptions([&] {
    if (CudaResult broken = device.sticky_error()) return broken;
    auto made = std::make_unique<CudaModule>();
    try {
      const int target = target_arch(image);  // of PTX by itself: a driver compiles all of it at once
      device.register_arch(std::max(target, newest_code_arch(image, sm80::kArchitecture)));
      GpuCode code = select_code(image, code_request(device.architecture()));
      if (code.kind == CodeKind::MachineCode)
        made->image = std::make_unique<sm80::LoadedCubin>(std::move(code.bytes), device.memory());
      else
        made->image =
            std::make_unique<LoadedModule>(std::move(code.bytes), device.memory(), device.guards_shared(), target > 0);
    } catch (const NoPtx& error) {  // told when a kernel of it is launched
      made->unsupported_reason = error.what();
    }
    module = Handles<CudaModule>::all().add(std::move(made));
    return kSuccess;
  });
}

CudaResult find_kernel(Kernel*& kernel, CudaModule& module, const std::string& name) {
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  Kernel*& known = module.kernels[name];
  if (!known) {
    const KernelSignature* found = module.image ? module.image->signature(name) : nullptr;
    if (module.image && !found) return module.kernels.erase(name), kNotFound;
    known = Handles<Kernel>::all().add(std::make_unique<Kernel>(Kernel{&module, found, name, module.unsupported_reason}));
  }
  return kernel = known, kSuccess;
}

}  // namespace vgpu

namespace {

// The kernels of a module go with it.
void drop_kernels(const CudaModule& module) {
  for (const auto& [name, kernel] : module.kernels) Handles<Kernel>::all().take(kernel);
}

// f(module) of one that is alive.
template <class F> int with_module(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  CudaModule* module = alive<CudaModule>(handle);
  return module ? static_cast<int>(f(*module)) : kInvalidHandle;
}
template <class F> int with_kernel(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  Kernel* kernel = alive<Kernel>(handle);
  return kernel ? static_cast<int>(f(*kernel)) : kInvalidHandle;
}

}  // namespace

namespace vgpu {

void unload_modules_of(const void* context) {
  Handles<CudaModule>::all().take_where([=](const CudaModule& one) {
    if (one.owner != context) return false;
    return drop_kernels(one), true;
  });
}

}  // namespace vgpu

API int cuModuleLoadData(void** module, const void* image) {
  if (!module) return kInvalidValue;
  CudaModule* made = nullptr;
  CudaResult result = load(made, image);
  if (made) made->owner = owning_context();
  return *module = made, result;
}
API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) { return cuModuleLoadData(module, image); }
API int cuModuleLoadFatBinary(void** module, const void* image) { return cuModuleLoadData(module, image); }
API int cuModuleUnload(void* handle) {
  if (in_host_function()) return kNotPermitted;
  if (!alive<CudaModule>(handle)) return kInvalidHandle;
  wait_for_all();
  if (auto module = Handles<CudaModule>::all().take(handle)) drop_kernels(*module);
  return kSuccess;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (!function || !name) return kInvalidValue;
  return with_module(module, [=](CudaModule& from) {
    return translate_exceptions([&] {
      Kernel* kernel = nullptr;
      CudaResult result = find_kernel(kernel, from, name);
      return result ? result : give(function, kernel);
    });
  });
}
API int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return with_module(module, [=](CudaModule& of) { return give(count, of.image ? of.image->entries().size() : 0); });
}
API int cuModuleEnumerateFunctions(void** functions, unsigned most, void* module) {
  if (!functions) return kInvalidValue;
  return with_module(module, [=](CudaModule& of) {
    unsigned next = 0;
    for (const std::string& name : of.image ? of.image->entries() : std::vector<std::string>())
      if (next < most) cuModuleGetFunction(functions + next++, module, name.c_str());
    return kSuccess;
  });
}
API int cuFuncGetName(const char** name, void* function) {
  return with_kernel(function, [=](Kernel& of) { return give(name, of.name.c_str()); });
}
API int cuFuncGetModule(void** module, void* function) {
  return with_kernel(function, [=](Kernel& of) { return give(module, of.module); });
}
API int cuModuleGetLoadingMode(int* mode) { return give(mode, 2); }  // lazily: a kernel is decoded when first used
API int cuModuleGetGlobal_v2(uint64_t* at, size_t* bytes, void* module, const char* name) {
  if (!name) return kInvalidValue;
  return with_module(module, [=](CudaModule& from) {
    const ModuleVariable* found = from.image ? from.image->variable(name) : nullptr;
    if (!found) return kNotFound;
    if (at) *at = found->address;
    if (bytes) *bytes = found->size;
    return kSuccess;
  });
}

namespace {

// CUfunction_attribute.
enum : int {
  kThreads = 0,
  kShared = 1,
  kConstant = 2,
  kLocal = 3,
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kDynamicSharedLimit = 8,
  kCarveout = 9,
  kAttributes = 17
};

int threads_of(const Kernel& kernel) {
  const uint32_t own = kernel.signature->most_threads, most = static_cast<uint32_t>(attribute(kMaxThreads));
  return static_cast<int>(own ? std::min(own, most) : most);
}
int value_of(int which, const Kernel& kernel) {
  switch (which) {
    case kThreads: return threads_of(kernel);
    case kShared: return static_cast<int>(kernel.program->declared_shared());
    case kConstant: return static_cast<int>(kernel.module->image->constant_bytes());
    case kLocal: return static_cast<int>(kernel.program->local_bytes);
    case kRegisters: return 32;
    case kPtxVersion:
    case kBinaryVersion: return Device::get().capability();
    case kDynamicSharedLimit: return Device::get().most_dynamic_shared(kernel);
    default: return 0;
  }
}
// f(kernel), under the lock, once its program is there.
template <class F> int with_program(void* function, F f) {
  return with_kernel(function, [=](Kernel& kernel) {
    Device& device = Device::get();
    std::lock_guard<std::mutex> hold(device.lock());
    return device.decode_kernel(kernel) ? static_cast<int>(f(kernel)) : kNoBinaryForGpu;
  });
}

}  // namespace

API int cuFuncGetAttribute(int* value, int which, void* function) {
  if (!value || which < 0 || which >= kAttributes) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) { return give(value, value_of(which, kernel)); });
}
API int cuFuncSetAttribute(void* function, int which, int value) {
  if (which == kDynamicSharedLimit) {
    return with_program(function, [=](Kernel& kernel) {
      if (value < 0 || value > attribute(kSharedOptIn) - static_cast<int>(kernel.program->declared_shared()))
        return kInvalidValue;
      return kernel.dynamic_shared = value, kSuccess;
    });
  }
  const bool settable = which >= kCarveout && which < kAttributes;
  return with_kernel(function, [=](Kernel&) { return settable ? kSuccess : kInvalidValue; });
}
API int cuFuncSetCacheConfig(void* function, int) {
  return with_kernel(function, [](Kernel&) { return kSuccess; });
}
API int cuFuncSetSharedMemConfig(void* function, int) {
  return with_kernel(function, [](Kernel&) { return kSuccess; });
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  if (threads <= 0) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) {
    return give(blocks, threads > threads_of(kernel) ? 0 : Device::get().occupancy(&kernel, threads, shared));
  });
}
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* f, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
API int cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, void* function, int blocks, int threads) {
  if (blocks <= 0 || threads <= 0) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) {
    const int each = attribute(kSharedOfMultiprocessor) / blocks - attribute(kSharedReserved);
    return give(bytes,
                std::max(0, std::min(each, attribute(kSharedOptIn)) - static_cast<int>(kernel.program->declared_shared())));
  });
}

// The fewest blocks of the most threads that keep the device busy.
API int cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, void* function, size_t (*shared)(int), size_t bytes,
                                         int most) {
  if (!blocks || !threads) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) {
    *threads = most > 0 ? std::min(most, threads_of(kernel)) : threads_of(kernel);
    const int each = Device::get().occupancy(&kernel, *threads, shared ? shared(*threads) : bytes);
    return *blocks = attribute(kMultiprocessors) * std::max(1, each), kSuccess;
  });
}
API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, void* f, size_t (*shared)(int), size_t bytes,
                                                  int most, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(blocks, threads, f, shared, bytes, most);
}

namespace vgpu {

int launch(Kernel& kernel, const Configuration& how, const Arguments& given, void* stream) {
  Stream* on = stream_of(stream);
  if (!on) return kInvalidHandle;
  if (auto taken = capture_made(*on, [&](Step& step) { return make_step(step, kernel, how, given); })) return *taken;
  Launch made;
  if (CudaResult wrong = Device::get().prepare(made, kernel, how, given)) return wrong;
  made.operation = add_operation(*on);
  return in_order(stream, [made = std::move(made)] { return Device::get().run(made); });
}

CudaResult read(Configuration& how, const LaunchAttribute* attributes, unsigned count) {
  enum : int { kCooperative = 2, kClusterDimension = 4 };
  for (unsigned k = 0; k < count; k++) {
    const LaunchAttribute& one = attributes[k];
    if (one.id == kCooperative) how.cooperative = one.value[0] != 0;
    if (one.id != kClusterDimension || (one.value[0] <= 1 && one.value[1] <= 1 && one.value[2] <= 1)) continue;
    return note_unsupported("clusters of blocks"), kNotSupported;
  }
  return kSuccess;
}

}  // namespace vgpu

namespace {

// What `extra` of a launch holds: CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE, and how it ends.
Arguments arguments_of(void** each, void** extra) {
  Arguments given{each};
  for (int k = 0; extra && extra[k]; k += 2) {
    if (address(extra[k]) == 1) given.packed = extra[k + 1];
    if (address(extra[k]) == 2 && extra[k + 1]) given.packed_bytes = *static_cast<size_t*>(extra[k + 1]);
    if (address(extra[k]) > 2) break;
  }
  return given;
}
int launch_by_driver(void* function, const Configuration& how, const Arguments& given, void* stream) {
  return with_kernel(function, [&](Kernel& kernel) {
    int result = launch(kernel, how, given, stream);
    return result == kInvalidConfiguration ? kInvalidValue : result;  // as the runtime alone calls it
  });
}

// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};

}  // namespace

API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void* stream, void** arguments, void** extra) {
  if (!alive<Kernel>(function)) return kInvalidHandle;
  return launch_by_driver(function, {{gx, gy, gz}, {bx, by, bz}, shared}, arguments_of(arguments, extra), stream);
}
API int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** arguments, void** extra) {
  if (!alive<Kernel>(function)) return kInvalidHandle;
  if (!config || (config->count && !config->attributes)) return kInvalidValue;
  const unsigned *grid = config->grid, *block = config->block;
  Configuration how{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, config->shared};
  if (CudaResult wrong = read(how, config->attributes, config->count)) return wrong;
  return launch_by_driver(function, how, arguments_of(arguments, extra), config->stream);
}
API int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                  unsigned shared, void* stream, void** arguments) {
  return launch_by_driver(function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, Arguments{arguments}, stream);
}

PER_THREAD(cuLaunchKernel, _ptsz);
PER_THREAD(cuLaunchKernelEx, _ptsz);
PER_THREAD(cuLaunchCooperativeKernel, _ptsz);
