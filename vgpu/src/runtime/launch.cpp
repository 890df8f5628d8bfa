// Launches by the host address of a kernel, and attributes of kernels.
#include <cstring>
#include <vector>

#include "registration.h"

using namespace vgpu;

namespace {

struct Dim { uint32_t x, y, z; };
struct PushedConfiguration {
  Dim grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<PushedConfiguration> configurations;  // of kernel<<<...>>>, popped by the kernel's stub

Configuration configuration(Dim grid, Dim block, size_t shared, bool cooperative = false) {
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, cooperative};
}
int launch_by_address(const void* host, const Configuration& configuration, void** arguments, void* stream) {
  Kernel* kernel = nullptr;
  if (int error = find_launched_kernel(kernel, host)) return set_last_error(error);
  return set_last_error(launch(*kernel, configuration, Arguments{arguments}, stream));
}

}  // namespace

API unsigned __cudaPushCallConfiguration(Dim grid, Dim block, size_t shared, void* stream) {
  return configurations.push_back({grid, block, shared, stream}), 0;
}
API int __cudaPopCallConfiguration(Dim* grid, Dim* block, size_t* shared, void* stream) {
  if (configurations.empty()) return kInvalidValue;
  PushedConfiguration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid, *block = top.block, *shared = top.shared;
  return *static_cast<void**>(stream) = top.stream, kSuccess;
}

API int cudaLaunchKernel(const void* host, Dim grid, Dim block, void** arguments, size_t shared, void* stream) {
  return launch_by_address(host, configuration(grid, block, shared), arguments, stream);
}
API int __cudaLaunchKernel(void* f, Dim grid, Dim block, void** arguments, size_t shared, void* stream) {
  return cudaLaunchKernel(f, grid, block, arguments, shared, stream);
}
API int cudaLaunchCooperativeKernel(const void* f, Dim grid, Dim block, void** arguments, size_t shared, void* stream) {
  return launch_by_address(f, configuration(grid, block, shared, true), arguments, stream);
}
struct RuntimeConfig {
  Dim grid, block;
  size_t shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
API int cudaLaunchKernelExC(const RuntimeConfig* config, const void* f, void** arguments) {
  if (!config || (config->count && !config->attributes)) return set_last_error(kInvalidValue);
  Configuration launch_configuration = configuration(config->grid, config->block, config->shared);
  if (CudaResult error = apply_attributes(launch_configuration, config->attributes, config->count))
    return set_last_error(error);
  return launch_by_address(f, launch_configuration, arguments, config->stream);
}
API int __cudaGetKernel(void** kernel, const void* host) { return write_output(kernel, const_cast<void*>(host)); }
API int cudaGetFuncBySymbol(void** function, const void* host) {
  Kernel* kernel = kernel_for_symbol(host);
  return kernel ? write_output(function, kernel) : kInvalidFunction;
}

// cudaFuncAttributes: shared, constant and local bytes, then threads, registers, versions, ...  Numbers: CUfunction_attribute.
API int cudaFuncGetAttributes(size_t* attributes, const void* host) {
  if (!attributes) return set_last_error(kInvalidValue);
  Kernel* kernel = kernel_for_symbol(host);
  if (!kernel) return set_last_error(kInvalidFunction);
  int values[9] = {};
  for (int number : {0, 1, 2, 3, 4, 5, 6, 8})
    if (int error = cuFuncGetAttribute(&values[number], number, kernel)) return set_last_error(error);
  std::memset(attributes, 0, 56);
  for (int k = 0; k < 3; k++) attributes[k] = static_cast<size_t>(values[k + 1]);
  const int numbers[] = {values[0], values[4], values[5], values[6], 0, values[8]};
  std::memcpy(attributes + 3, numbers, sizeof numbers);
  return kSuccess;
}
API int cudaFuncSetAttribute(const void* host, int number, int value) {
  Kernel* kernel = kernel_for_symbol(host);
  return set_last_error(kernel ? cuFuncSetAttribute(kernel, number, value) : kInvalidFunction);
}
API int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
API int cudaFuncSetSharedMemConfig(const void*, int) { return kSuccess; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads, size_t shared) {
  Kernel* kernel = kernel_for_symbol(host);
  return set_last_error(kernel ? cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared)
                               : kInvalidFunction);
}
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int threads, size_t shared,
                                                               unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared);
}

PER_THREAD(cudaLaunchCooperativeKernel, _ptsz);
PER_THREAD(cudaLaunchKernel, _ptsz);
PER_THREAD(cudaLaunchKernelExC, _ptsz);
PER_THREAD(__cudaLaunchKernel, _ptsz);
