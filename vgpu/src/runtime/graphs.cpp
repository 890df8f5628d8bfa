// The runtime's graphs, which forward to the driver's.  Kernels are given by the addresses of their host functions.
#include "driver/graphs.h"

#include <algorithm>

#include "box_copy.h"
#include "registration.h"

using namespace vgpu;

extern "C" {
int cuGraphCreate(void**, unsigned);
int cuGraphDestroy(void*);
int cuGraphAddEmptyNode(void**, void*, Node* const*, size_t);
int cuGraphAddMemsetNode(void**, void*, Node* const*, size_t, const void* parameters, void* context);
int cuGraphAddMemcpyNode(void**, void*, Node* const*, size_t, const Memcpy3DParams*, void* context);
int cuGraphAddHostNode(void**, void*, Node* const*, size_t, const void* parameters);
int cuGraphAddChildGraphNode(void**, void*, Node* const*, size_t, const void* child);
int cuGraphAddDependencies_v2(void*, Node* const* from, Node* const* to, const void* edges, size_t);
int cuGraphGetNodes(void*, void**, size_t*);
int cuGraphInstantiateWithFlags(void**, void*, uint64_t);
int cuGraphExecDestroy(void*);
int cuGraphExecMemsetNodeSetParams(void*, void*, const void* parameters, void* context);
int cuGraphExecMemcpyNodeSetParams(void*, void*, const Memcpy3DParams*, void* context);
int cuGraphExecHostNodeSetParams(void*, void*, const void* parameters);
int cuGraphUpload(void*, void* stream);
int cuGraphLaunch(void*, void* stream);
}

namespace {

struct KernelParameters {  // cudaKernelNodeParams
  const void* host;
  uint32_t grid[3], block[3], shared;
  void** arguments;
  void** extra;
};

int make_kernel_step(Step& step, const KernelParameters* parameters) {
  if (!parameters || parameters->extra) return parameters ? kNotSupported : kInvalidValue;
  Kernel* kernel = nullptr;
  if (int error = find_launched_kernel(kernel, parameters->host)) return error;
  Configuration configuration{{}, {}, parameters->shared};
  std::copy_n(parameters->grid, 3, configuration.grid), std::copy_n(parameters->block, 3, configuration.block);
  return make_step(step, *kernel, configuration, Arguments{parameters->arguments});
}

}  // namespace

API int cudaGraphCreate(void** graph, unsigned flags) { return set_last_error(cuGraphCreate(graph, flags)); }
API int cudaGraphDestroy(void* graph) { return set_last_error(cuGraphDestroy(graph)); }
API int cudaGraphAddEmptyNode(void** node, void* graph, Node* const* dependencies, size_t count) {
  return set_last_error(cuGraphAddEmptyNode(node, graph, dependencies, count));
}
API int cudaGraphAddKernelNode(void** node, void* graph, Node* const* dependencies, size_t count,
                               const KernelParameters* parameters) {
  Step step;
  if (int error = make_kernel_step(step, parameters)) return set_last_error(error);
  return set_last_error(add_node(node, graph, dependencies, count, std::move(step)));
}
API int cudaGraphAddMemsetNode(void** node, void* graph, Node* const* dependencies, size_t count, const void* parameters) {
  return set_last_error(cuGraphAddMemsetNode(node, graph, dependencies, count, parameters, nullptr));
}
API int cudaGraphAddMemcpyNode(void** node, void* graph, Node* const* dependencies, size_t count,
                               const BoxParameters* parameters) {
  Memcpy3DParams params{};
  if (int error = to_driver(parameters, params)) return set_last_error(error);
  return set_last_error(cuGraphAddMemcpyNode(node, graph, dependencies, count, &params, nullptr));
}
API int cudaGraphAddMemcpyNode1D(void** node, void* graph, Node* const* dependencies, size_t count, void* to, const void* from,
                                 size_t bytes, int) {
  const Memcpy3DParams params = make_box_copy(to, bytes, from, bytes, bytes, 1);
  return set_last_error(cuGraphAddMemcpyNode(node, graph, dependencies, count, &params, nullptr));
}
API int cudaGraphAddHostNode(void** node, void* graph, Node* const* dependencies, size_t count, const void* parameters) {
  return set_last_error(cuGraphAddHostNode(node, graph, dependencies, count, parameters));
}
API int cudaGraphAddChildGraphNode(void** node, void* graph, Node* const* dependencies, size_t count, const void* child) {
  return set_last_error(cuGraphAddChildGraphNode(node, graph, dependencies, count, child));
}
// The two versions for the two signatures of cudaGraphAddDependencies (soname_shims/cudart.cpp).
API int cudaGraphAddDependencies_v2(void* graph, Node* const* from, Node* const* to, const void* edges, size_t count) {
  return set_last_error(cuGraphAddDependencies_v2(graph, from, to, edges, count));
}
API int cudaGraphGetNodes(void* graph, void** nodes, size_t* count) {
  return set_last_error(cuGraphGetNodes(graph, nodes, count));
}

API int cudaGraphInstantiateWithFlags(void** executable, void* graph, uint64_t flags) {
  return set_last_error(cuGraphInstantiateWithFlags(executable, graph, flags));
}
API int cudaGraphExecDestroy(void* executable) { return set_last_error(cuGraphExecDestroy(executable)); }
API int cudaGraphExecKernelNodeSetParams(void* executable, void* node, const KernelParameters* parameters) {
  Step step;
  if (int error = make_kernel_step(step, parameters)) return set_last_error(error);
  return set_last_error(update_node(executable, node, std::move(step)));
}
API int cudaGraphExecMemsetNodeSetParams(void* executable, void* node, const void* parameters) {
  return set_last_error(cuGraphExecMemsetNodeSetParams(executable, node, parameters, nullptr));
}
API int cudaGraphExecMemcpyNodeSetParams1D(void* executable, void* node, void* to, const void* from, size_t bytes, int) {
  const Memcpy3DParams params = make_box_copy(to, bytes, from, bytes, bytes, 1);
  return set_last_error(cuGraphExecMemcpyNodeSetParams(executable, node, &params, nullptr));
}
API int cudaGraphExecHostNodeSetParams(void* executable, void* node, const void* parameters) {
  return set_last_error(cuGraphExecHostNodeSetParams(executable, node, parameters));
}
API int cudaGraphUpload(void* executable, void* stream) { return set_last_error(cuGraphUpload(executable, stream)); }
API int cudaGraphLaunch(void* executable, void* stream) { return set_last_error(cuGraphLaunch(executable, stream)); }

PER_THREAD(cudaGraphLaunch, _ptsz);
PER_THREAD(cudaGraphUpload, _ptsz);
