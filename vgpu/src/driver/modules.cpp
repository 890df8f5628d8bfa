// Calls of modules, functions, occupancy and launches.
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

// Machine code of sm_80 runs on all devices with compute capability 8.x; VGPU_CODE=sass prefers it to PTX.
CodeRequest code_request(int arch) {
  const bool reads_machine_code = arch / 10 == sm80::kArchitecture / 10;
  return {arch, reads_machine_code ? sm80::kArchitecture : 0, settings().code == "sass"};
}

CudaResult load_module(CudaModule*& module, const void* image) {
  if (!image) return kInvalidValue;
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  return translate_exceptions([&] {
    if (CudaResult error = device.sticky_error()) return error;
    auto loaded = std::make_unique<CudaModule>();
    try {
      const int target = target_arch(image);  // of plain PTX, all of which a driver compiles when it is loaded
      device.register_arch(std::max(target, newest_code_arch(image, sm80::kArchitecture)));
      GpuCode code = select_code(image, code_request(device.architecture()));
      if (code.kind == CodeKind::MachineCode)
        loaded->image = std::make_unique<sm80::LoadedCubin>(std::move(code.bytes), device.memory());
      else  // guards_shared(): gaps between shared variables for VGPU_CHECK=memcheck
        loaded->image =
            std::make_unique<LoadedModule>(std::move(code.bytes), device.memory(), device.guards_shared(), target > 0);
    } catch (const NoSuitableCode& error) {  // reported when one of its kernels is launched
      loaded->unsupported_reason = error.what();
    }
    module = Handles<CudaModule>::all().add(std::move(loaded));
    return kSuccess;
  });
}

CudaResult find_kernel(Kernel*& kernel, CudaModule& module, const std::string& name) {
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  Kernel*& entry = module.kernels[name];
  if (!entry) {
    const KernelSignature* signature = module.image ? module.image->signature(name) : nullptr;
    if (module.image && !signature) return module.kernels.erase(name), kNotFound;
    entry = Handles<Kernel>::all().add(std::make_unique<Kernel>(Kernel{&module, signature, name, module.unsupported_reason}));
  }
  return kernel = entry, kSuccess;
}

}  // namespace vgpu

namespace {

// Removes the kernels of a module that is unloaded.
void drop_kernels(const CudaModule& module) {
  for (const auto& [name, kernel] : module.kernels) Handles<Kernel>::all().remove(kernel);
}

// Returns f(module), or the error if the handle is invalid.
template <class F> int with_module(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  CudaModule* module = find_alive<CudaModule>(handle);
  return module ? static_cast<int>(f(*module)) : kInvalidHandle;
}
template <class F> int with_kernel(const void* handle, F f) {
  if (in_host_function()) return kNotPermitted;
  Kernel* kernel = find_alive<Kernel>(handle);
  return kernel ? static_cast<int>(f(*kernel)) : kInvalidHandle;
}

}  // namespace

namespace vgpu {

void unload_modules_of(const void* context) {
  Handles<CudaModule>::all().erase_where([=](const CudaModule& module) {
    if (module.owner != context) return false;
    return drop_kernels(module), true;
  });
}

}  // namespace vgpu

API int cuModuleLoadData(void** module, const void* image) {
  if (!module) return kInvalidValue;
  CudaModule* loaded = nullptr;
  CudaResult result = load_module(loaded, image);
  if (loaded) loaded->owner = owning_context();
  return *module = loaded, result;
}
API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) { return cuModuleLoadData(module, image); }
API int cuModuleLoadFatBinary(void** module, const void* image) { return cuModuleLoadData(module, image); }
API int cuModuleUnload(void* handle) {
  if (in_host_function()) return kNotPermitted;
  if (!find_alive<CudaModule>(handle)) return kInvalidHandle;
  wait_for_all();
  if (auto module = Handles<CudaModule>::all().remove(handle)) drop_kernels(*module);
  return kSuccess;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (!function || !name) return kInvalidValue;
  return with_module(module, [=](CudaModule& source) {
    return translate_exceptions([&] {
      Kernel* kernel = nullptr;
      CudaResult result = find_kernel(kernel, source, name);
      return result ? result : write_output(function, kernel);
    });
  });
}
API int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return with_module(
      module, [=](CudaModule& source) { return write_output(count, source.image ? source.image->entries().size() : 0); });
}
API int cuModuleEnumerateFunctions(void** functions, unsigned capacity, void* module) {
  if (!functions) return kInvalidValue;
  return with_module(module, [=](CudaModule& source) {
    unsigned count = 0;
    for (const std::string& name : source.image ? source.image->entries() : std::vector<std::string>())
      if (count < capacity) cuModuleGetFunction(functions + count++, module, name.c_str());
    return kSuccess;
  });
}
API int cuFuncGetName(const char** name, void* function) {
  return with_kernel(function, [=](Kernel& kernel) { return write_output(name, kernel.name.c_str()); });
}
API int cuFuncGetModule(void** module, void* function) {
  return with_kernel(function, [=](Kernel& kernel) { return write_output(module, kernel.module); });
}
API int cuModuleGetLoadingMode(int* mode) { return write_output(mode, 2); }  // lazy: kernels are decoded at their first use
API int cuModuleGetGlobal_v2(uint64_t* address_output, size_t* bytes, void* module, const char* name) {
  if (!name) return kInvalidValue;
  return with_module(module, [=](CudaModule& source) {
    const ModuleVariable* variable = source.image ? source.image->variable(name) : nullptr;
    if (!variable) return kNotFound;
    if (address_output) *address_output = variable->address;
    if (bytes) *bytes = variable->size;
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

int max_threads_of(const Kernel& kernel) {
  const uint32_t kernel_limit = kernel.signature->max_threads, device_limit = static_cast<uint32_t>(attribute(kMaxThreads));
  return static_cast<int>(kernel_limit ? std::min(kernel_limit, device_limit) : device_limit);
}
int attribute_value(int attribute_number, const Kernel& kernel) {
  switch (attribute_number) {
    case kThreads: return max_threads_of(kernel);
    case kShared: return static_cast<int>(kernel.program->declared_shared());
    case kConstant: return static_cast<int>(kernel.module->image->constant_bytes());
    case kLocal: return static_cast<int>(kernel.program->local_bytes);
    case kRegisters: return 32;
    case kPtxVersion:
    case kBinaryVersion: return Device::get().capability();
    case kDynamicSharedLimit: return Device::get().max_dynamic_shared(kernel);
    default: return 0;
  }
}
// Returns f(kernel), called with the lock held and the kernel decoded.
template <class F> int with_program(void* function, F f) {
  return with_kernel(function, [=](Kernel& kernel) {
    Device& device = Device::get();
    std::lock_guard<std::mutex> guard(device.lock());
    return device.decode_kernel(kernel) ? static_cast<int>(f(kernel)) : kNoBinaryForGpu;
  });
}

}  // namespace

API int cuFuncGetAttribute(int* value, int number, void* function) {
  if (!value || number < 0 || number >= kAttributes) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) { return write_output(value, attribute_value(number, kernel)); });
}
API int cuFuncSetAttribute(void* function, int number, int value) {
  if (number == kDynamicSharedLimit) {
    return with_program(function, [=](Kernel& kernel) {
      if (value < 0 || value > attribute(kSharedOptIn) - static_cast<int>(kernel.program->declared_shared()))
        return kInvalidValue;
      return kernel.max_dynamic_shared = value, kSuccess;
    });
  }
  const bool is_settable = number >= kCarveout && number < kAttributes;
  return with_kernel(function, [=](Kernel&) { return is_settable ? kSuccess : kInvalidValue; });
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
    return write_output(blocks, threads > max_threads_of(kernel) ? 0 : Device::get().occupancy(&kernel, threads, shared));
  });
}
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* f, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
API int cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, void* function, int blocks, int threads) {
  if (blocks <= 0 || threads <= 0) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) {
    const int per_block = attribute(kSharedOfMultiprocessor) / blocks - attribute(kSharedReserved);
    return write_output(
        bytes, std::max(0, std::min(per_block, attribute(kSharedOptIn)) - static_cast<int>(kernel.program->declared_shared())));
  });
}

// Returns the number of blocks of the largest size that fill the device.
API int cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, void* function, size_t (*shared)(int), size_t bytes,
                                         int max_threads) {
  if (!blocks || !threads) return kInvalidValue;
  return with_program(function, [=](Kernel& kernel) {
    *threads = max_threads > 0 ? std::min(max_threads, max_threads_of(kernel)) : max_threads_of(kernel);
    const int blocks_per_multiprocessor = Device::get().occupancy(&kernel, *threads, shared ? shared(*threads) : bytes);
    return *blocks = attribute(kMultiprocessors) * std::max(1, blocks_per_multiprocessor), kSuccess;
  });
}
API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, void* f, size_t (*shared)(int), size_t bytes,
                                                  int max_threads, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(blocks, threads, f, shared, bytes, max_threads);
}

namespace vgpu {

int launch(Kernel& kernel, const Configuration& configuration, const Arguments& arguments, void* stream) {
  Stream* target = stream_of(stream);
  if (!target) return kInvalidHandle;
  if (auto capture_result =
          capture_with(*target, [&](Step& step) { return make_step(step, kernel, configuration, arguments); }))
    return *capture_result;
  Launch prepared;
  if (CudaResult error = Device::get().prepare(prepared, kernel, configuration, arguments))
    return note_refused_launch(kernel.name), error;
  prepared.operation = number_operation(*target);  // for VGPU_CHECK=order
  return in_order(stream, [prepared = std::move(prepared)] { return Device::get().run(prepared); });
}

CudaResult apply_attributes(Configuration& configuration, const LaunchAttribute* attributes, unsigned count) {
  enum : int {
    kCooperative = 2,
    kClusterDimension = 4,
    kProgrammaticSerialization = 6,
    kProgrammaticEvent = 7,
    kLaunchEvent = 12
  };
  for (unsigned k = 0; k < count; k++) {
    const auto& [id, padding, value] = attributes[k];
    switch (id) {
      case kCooperative: configuration.cooperative = value[0] != 0; break;
      case kClusterDimension:
        if (value[0] > 1 || value[1] > 1 || value[2] > 1) return note_unsupported("clusters of blocks"), kNotSupported;
        break;
      case kProgrammaticSerialization:  // executed in order, but a device may overlap the launch with the previous one
        if (value[0]) note_unsupported("programmatic dependent launches");
        break;
      case kProgrammaticEvent:
      case kLaunchEvent: return note_unsupported("events of launches"), kNotSupported;
      default: break;
    }
  }
  return kSuccess;
}

}  // namespace vgpu

namespace {

// Reads a launch's `extra` list: CU_LAUNCH_PARAM_BUFFER_POINTER (1), _SIZE (2) and _END (0).
Arguments arguments_of(void** each, void** extra) {
  Arguments arguments{each};
  for (int k = 0; extra && extra[k]; k += 2) {
    if (address(extra[k]) == 1) arguments.packed = extra[k + 1];
    if (address(extra[k]) == 2 && extra[k + 1]) arguments.packed_bytes = *static_cast<size_t*>(extra[k + 1]);
    if (address(extra[k]) > 2) break;
  }
  return arguments;
}
int refuse_invalid_handle() { return note_refused_launch("(an invalid handle of a kernel)"), kInvalidHandle; }
int launch_by_driver(void* function, const Configuration& configuration, const Arguments& arguments, void* stream) {
  if (in_host_function()) return kNotPermitted;
  Kernel* kernel = find_alive<Kernel>(function);
  if (!kernel) return refuse_invalid_handle();
  const int result = launch(*kernel, configuration, arguments, stream);
  return result == kInvalidConfiguration ? kInvalidValue : result;  // only the runtime has that error
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
  if (arguments && extra && find_alive<Kernel>(function)) return kInvalidValue;
  return launch_by_driver(function, {{gx, gy, gz}, {bx, by, bz}, shared}, arguments_of(arguments, extra), stream);
}
API int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** arguments, void** extra) {
  if (!find_alive<Kernel>(function)) return refuse_invalid_handle();
  if (!config || (config->count && !config->attributes) || (arguments && extra)) return kInvalidValue;
  const unsigned *grid = config->grid, *block = config->block;
  Configuration configuration{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, config->shared};
  if (CudaResult error = apply_attributes(configuration, config->attributes, config->count)) return error;
  return launch_by_driver(function, configuration, arguments_of(arguments, extra), config->stream);
}
API int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                  unsigned shared, void* stream, void** arguments) {
  return launch_by_driver(function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, Arguments{arguments}, stream);
}

PER_THREAD(cuLaunchKernel, _ptsz);
PER_THREAD(cuLaunchKernelEx, _ptsz);
PER_THREAD(cuLaunchCooperativeKernel, _ptsz);
