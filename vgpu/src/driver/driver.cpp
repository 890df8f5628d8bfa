// The driver API (libcuda.so.1), as far as one program uses one context of one device.  Everything is done when the call
// returns: streams and events are names.
#include <algorithm>
#include <cstring>

#include "../error.h"
#include "../fatbin.h"
#include "device.h"

#define API extern "C" __attribute__((visibility("default")))

using namespace vgpu;

namespace {
char context_name[64];
thread_local void* current = nullptr;
}  // namespace

API int cuInit(unsigned) { return Device::get(), kSuccess; }
API int cuDriverGetVersion(int* version) { return *version = 12080, kSuccess; }
API int cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
API int cuDeviceGet(int* device, int) { return *device = 0, kSuccess; }
API int cuDeviceGetName(char* name, int length, int) {
  return std::snprintf(name, static_cast<size_t>(length), "tfdet virtual GPU (CPU emulation)"), kSuccess;
}
API int cuCtxCreate_v2(void** context, unsigned, int) { return *context = current = context_name, kSuccess; }
API int cuCtxDestroy_v2(void*) { return current = nullptr, kSuccess; }
API int cuCtxSynchronize() { return Device::get().sticky(); }

API int cuModuleLoadData(void** module, const void* image) {
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  auto made = std::make_unique<Module>();
  try {
    made->image = std::make_unique<Image>(ptx_of(image, device.capability()).text, device.memory());
  } catch (const Unsupported& error) {
    std::fprintf(stderr, "vgpu: a module is refused: %s\n", error.what());
    return kNoBinaryForGpu;
  }
  *module = made.release();
  return kSuccess;
}
API int cuModuleUnload(void* module) { return delete static_cast<Module*>(module), kSuccess; }
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  Module* from = static_cast<Module*>(module);
  const ptx::Function* found = from->image->function(name);
  if (!found || !found->entry || !found->defined) return kNotFound;
  *function = new Kernel{from, found, nullptr, ""};
  return kSuccess;
}
API int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, void* module, const char* name) {
  const Symbol* found = static_cast<Module*>(module)->image->find(name);
  if (!found || found->space == ptx::Space::Shared) return kNotFound;
  if (address) *address = found->address;
  if (bytes) *bytes = found->size;
  return kSuccess;
}

API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  void* at = Device::get().memory().allocate(bytes);
  *address = reinterpret_cast<uint64_t>(at);
  return at ? kSuccess : bytes ? kOutOfMemory : kInvalidValue;
}
API int cuMemFree_v2(uint64_t address) {
  return !address || Device::get().memory().release(reinterpret_cast<void*>(address)) ? kSuccess : kInvalidValue;
}
API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess;
}
API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), Device::get().sticky();
}

API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void*, void** arguments, void** extra) {
  const uint32_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  const void* packed = nullptr;
  size_t bytes = 0;
  for (int k = 0; !arguments && extra && extra[k]; k += 2) {
    if (reinterpret_cast<size_t>(extra[k]) == 1) packed = extra[k + 1];
    if (reinterpret_cast<size_t>(extra[k]) == 2) bytes = *static_cast<size_t*>(extra[k + 1]);
  }
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return device.launch(*static_cast<Kernel*>(function), grid, block, shared, arguments, packed, bytes);
}
