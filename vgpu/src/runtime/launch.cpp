// Launches by the host address of a kernel, and what is asked of one.
#include <cstring>
#include <vector>

#include "registration.h"

using namespace vgpu;

namespace {

struct Dim { uint32_t x, y, z; };
struct Configuration { Dim grid, block; size_t shared; void* stream; };
thread_local std::vector<Configuration> configurations;  // of `kernel<<<...>>>`: pushed, and taken by its stub
constexpr int kInvalidFunction = 98;

}  // namespace

API unsigned __cudaPushCallConfiguration(Dim grid, Dim block, size_t shared, void* stream) {
  return configurations.push_back({grid, block, shared, stream}), 0;
}
API int __cudaPopCallConfiguration(Dim* grid, Dim* block, size_t* shared, void* stream) {
  if (configurations.empty()) return kInvalidValue;
  Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid, *block = top.block, *shared = top.shared;
  return *static_cast<void**>(stream) = top.stream, kSuccess;
}

API int cudaLaunchKernel(const void* host, Dim grid, Dim block, void** arguments, size_t shared, void*) {
  Kernel* kernel = kernel_of(host);
  if (!kernel) return remember(Device::get().sticky() ? Device::get().sticky() : kInvalidFunction);
  const uint32_t g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return remember(device.launch(*kernel, g, b, static_cast<uint32_t>(shared), arguments, nullptr, 0));
}
API int __cudaLaunchKernel(void* f, Dim grid, Dim block, void** arguments, size_t shared, void* stream) {
  return cudaLaunchKernel(f, grid, block, arguments, shared, stream);
}
API int cudaLaunchCooperativeKernel(const void* f, Dim grid, Dim block, void** arguments, size_t shared, void* stream) {
  return cudaLaunchKernel(f, grid, block, arguments, shared, stream);
}
struct LaunchConfig { Dim grid, block; size_t shared; void* stream; void* attributes; unsigned count; };
API int cudaLaunchKernelExC(const LaunchConfig* config, const void* f, void** arguments) {
  return cudaLaunchKernel(f, config->grid, config->block, arguments, config->shared, config->stream);
}
API int __cudaGetKernel(void** kernel, const void* host) { return *kernel = const_cast<void*>(host), kSuccess; }
API int cudaGetFuncBySymbol(void** function, const void* host) {
  return *function = kernel_of(host), *function ? kSuccess : kInvalidFunction;
}

// cudaFuncAttributes: shared, constant and local bytes, then threads, registers, versions, ...
API int cudaFuncGetAttributes(size_t* attributes, const void* host) {
  Kernel* kernel = kernel_of(host);
  if (!kernel) return remember(kInvalidFunction);
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  const Program* program = device.program(*kernel);
  if (!program) return remember(kNoBinaryForGpu);
  std::memset(attributes, 0, 56);
  attributes[0] = program->shared_bytes, attributes[2] = program->local_bytes;
  const int numbers[] = {1024, 32, device.capability(), device.capability(), 0, 49152};
  std::memcpy(attributes + 3, numbers, sizeof numbers);
  return kSuccess;
}
API int cudaFuncSetAttribute(const void*, int, int) { return kSuccess; }
API int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
API int cudaFuncSetSharedMemConfig(const void*, int) { return kSuccess; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, nullptr, threads, shared);
}
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, nullptr, threads, shared);
}
