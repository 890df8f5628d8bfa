// Modules, functions and launches.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../error.h"
#include "../fatbin.h"
#include "api.h"
#include "refused.h"

using namespace vgpu;

namespace vgpu {

Result load(Module*& module, const void* image) {
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return guarded([&] {
    auto made = std::make_unique<Module>();
    try {
      made->image = std::make_unique<Image>(ptx_of(image, device.capability()).text, device.memory());
    } catch (const NoPtx& error) {  // told when a kernel of it is launched
      made->refused = error.what();
    }
    module = made.release();
    return kSuccess;
  });
}

}  // namespace vgpu

API int cuModuleLoadData(void** module, const void* image) {
  Module* made = nullptr;
  Result result = load(made, image);
  return *module = made, result;
}
API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) { return cuModuleLoadData(module, image); }
API int cuModuleLoadFatBinary(void** module, const void* image) { return cuModuleLoadData(module, image); }
API int cuModuleUnload(void* module) { return delete static_cast<Module*>(module), kSuccess; }
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  Module* from = static_cast<Module*>(module);
  if (!from) return kInvalidHandle;
  const ptx::Function* found = from->image ? from->image->function(name) : nullptr;
  if (from->image && (!found || !found->entry || !found->defined)) return kNotFound;
  return guarded([&] { return *function = new Kernel{from, found, name, nullptr, from->refused}, kSuccess; });
}
API int cuModuleGetFunctionCount(unsigned* count, void* module) {
  const auto& image = static_cast<Module*>(module)->image;
  return *count = image ? static_cast<unsigned>(image->entries().size()) : 0, kSuccess;
}
API int cuModuleEnumerateFunctions(void** functions, unsigned most, void* module) {
  const auto& image = static_cast<Module*>(module)->image;
  if (!image) return kSuccess;
  for (const std::string& name : image->entries())
    if (most) cuModuleGetFunction(functions++, module, name.c_str()), most--;
  return kSuccess;
}
API int cuFuncGetName(const char** name, void* function) {
  return *name = static_cast<Kernel*>(function)->name.c_str(), kSuccess;
}
API int cuFuncGetModule(void** module, void* function) { return *module = static_cast<Kernel*>(function)->module, kSuccess; }
API int cuModuleGetLoadingMode(int* mode) { return *mode = 2, kSuccess; }  // lazily: a kernel is decoded when first used
API int cuModuleGetGlobal_v2(uint64_t* at, size_t* bytes, void* module, const char* name) {
  Module* from = static_cast<Module*>(module);
  const Symbol* found = from && from->image ? from->image->find(name) : nullptr;
  if (!found || found->space == ptx::Space::Shared) return kNotFound;
  if (at) *at = found->address;
  if (bytes) *bytes = found->size;
  return kSuccess;
}

// CUfunction_attribute: 0 threads, 1 shared bytes, 2 constant bytes, 3 local bytes, 4 registers, 5 and 6 versions.
API int cuFuncGetAttribute(int* value, int which, void* function) {
  Kernel* kernel = static_cast<Kernel*>(function);
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  const Program* program = device.program(*kernel);
  if (!program) return kNoBinaryForGpu;
  *value = which == 0 ? 1024 : which == 1 ? static_cast<int>(program->shared_bytes)
           : which == 2 ? static_cast<int>(kernel->module->image->constant_bytes())
           : which == 3 ? static_cast<int>(program->local_bytes) : which == 4 ? 32
           : which == 5 || which == 6 ? device.capability() : 0;
  return kSuccess;
}
API int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
API int cuFuncSetCacheConfig(void*, int) { return kSuccess; }
API int cuFuncSetSharedMemConfig(void*, int) { return kSuccess; }

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
  return *blocks = std::clamp(2048 / std::max(threads, 1), 1, 32), kSuccess;
}
API int cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, void*, int blocks, int) {
  return *bytes = static_cast<size_t>(attribute(81) / std::max(blocks, 1)), kSuccess;
}
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* f, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}

// The fewest blocks of the most threads that keep the device busy.
API int cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, void*, size_t (*)(int), size_t, int most) {
  *threads = most > 0 ? std::min(most, 1024) : 1024;
  return *blocks = attribute(16) * std::clamp(2048 / *threads, 1, 32), kSuccess;
}
API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, void* f, size_t (*shared)(int), size_t bytes,
                                                  int most, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(blocks, threads, f, shared, bytes, most);
}

API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void*, void** arguments, void** extra) {
  if (!function) return kInvalidHandle;
  const uint32_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  const void* packed = nullptr;
  size_t bytes = 0;
  for (int k = 0; !arguments && extra && extra[k]; k += 2) {  // CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE
    if (address(extra[k]) == 1) packed = extra[k + 1];
    if (address(extra[k]) == 2) bytes = *static_cast<size_t*>(extra[k + 1]);
  }
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return device.launch(*static_cast<Kernel*>(function), grid, block, shared, arguments, packed, bytes);
}
namespace {

// CUlaunchConfig and CUlaunchAttribute.
struct LaunchAttribute { int id, padding; unsigned value[16]; };
struct LaunchConfig { unsigned grid[3], block[3], shared; void* stream; const LaunchAttribute* attributes; unsigned count; };
constexpr int kClusterDimension = 4;

}  // namespace

API int cuLaunchKernelEx(const LaunchConfig* how, void* f, void** arguments, void** extra) {
  for (unsigned k = 0; k < how->count; k++) {
    const LaunchAttribute& one = how->attributes[k];
    if (one.id != kClusterDimension || (one.value[0] <= 1 && one.value[1] <= 1 && one.value[2] <= 1)) continue;
    note_refused("clusters of blocks");
    return kNotSupported;
  }
  const unsigned *grid = how->grid, *block = how->block;
  return cuLaunchKernel(f, grid[0], grid[1], grid[2], block[0], block[1], block[2], how->shared, how->stream, arguments, extra);
}
API int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                  unsigned shared, void* stream, void** arguments) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, nullptr);
}

PER_THREAD(cuLaunchKernel, _ptsz);
PER_THREAD(cuLaunchKernelEx, _ptsz);
PER_THREAD(cuLaunchCooperativeKernel, _ptsz);
