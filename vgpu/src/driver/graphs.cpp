// Graphs of kernels, copies, fills and host functions (XLA launches what it compiled through them): a list of steps, done in
// a stream one after the other in the order in which they were added, which never puts one before what it depends on.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "api.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

using Step = std::function<int(void* stream)>;
struct Node { Step step; };
struct Graph {
  std::vector<Node*> nodes;
  ~Graph() {
    for (Node* node : nodes) Handles<Node>::all().take(node);
  }
};

// What was instantiated: steps of its own, which may be exchanged without a change of the graph.
struct Executable {
  struct Entry {
    const void* of;
    Step step;
    bool enabled = true;
  };
  std::vector<Entry> entries;

  Entry* find(const void* node) {
    for (Entry& one : entries)
      if (one.of == node) return &one;
    return nullptr;
  }
  void take(const Graph& graph) {
    entries.clear();
    for (const Node* node : graph.nodes) entries.push_back({node, node->step});
  }
  int run(void* stream) const {
    for (const Entry& one : entries)
      if (int error = one.enabled ? one.step(stream) : kSuccess) return error;
    return kSuccess;
  }
};

struct KernelParameters {  // CUDA_KERNEL_NODE_PARAMS
  void* kernel;
  uint32_t grid[3], block[3], shared;
  void** arguments;
  void** extra;
};
struct FillParameters {  // CUDA_MEMSET_NODE_PARAMS
  uint64_t at;
  size_t pitch;
  uint32_t value, element;
  size_t width, height;
};
struct HostParameters {  // CUDA_HOST_NODE_PARAMS
  void (*f)(void*);
  void* data;
};

// The arguments are the caller's: they are copied as the kernel declares them.
Step step_of(const KernelParameters& given) {
  const KernelSignature* function = alive<Kernel>(given.kernel)->signature;
  std::vector<uint8_t> packed(function ? function->parameter_bytes : 0);
  for (size_t k = 0; function && given.arguments && k < function->parameters.size(); k++) {
    const KernelSignature::Parameter& one = function->parameters[k];
    std::memcpy(&packed[one.offset], given.arguments[k], one.size);
  }
  Configuration how{{}, {}, given.shared};
  std::copy_n(given.grid, 3, how.grid), std::copy_n(given.block, 3, how.block);
  return [handle = given.kernel, how, packed](void* stream) -> int {
    Kernel* kernel = alive<Kernel>(handle);
    if (!kernel) return kInvalidHandle;
    int result = launch(*kernel, how, {nullptr, packed.data(), packed.size()}, stream);
    return result == kInvalidConfiguration ? kInvalidValue : result;
  };
}
Step step_of(const FillParameters& given) {
  return [given](void* stream) {
    return fill_on(stream, {given.at, given.pitch, given.value, given.element, given.width, given.height});
  };
}
Step step_of(const Memcpy3DParams& given) {
  return [given](void* stream) { return copy_box_on(stream, given); };
}
Step step_of(const HostParameters& given) {
  return [given](void* stream) { return cuLaunchHostFunc(stream, given.f, given.data); };
}
Step step_of(const Graph& child) {
  auto whole = std::make_shared<Executable>();
  whole->take(child);
  return [whole](void* stream) { return whole->run(stream); };
}

// What may be taken: kSuccess.
CudaResult check(const KernelParameters& p) {
  const Kernel* kernel = alive<Kernel>(p.kernel);
  if (!kernel || p.extra) return kernel ? kNotSupported : kInvalidValue;
  const size_t wanted = kernel->signature ? kernel->signature->parameters.size() : 0;
  const bool missing =
      wanted && (!p.arguments || std::find(p.arguments, p.arguments + wanted, nullptr) != p.arguments + wanted);
  return missing ? kInvalidValue : kSuccess;
}
CudaResult check(const FillParameters& p) {
  return p.element == 1 || p.element == 2 || p.element == 4 ? kSuccess : kInvalidValue;
}
CudaResult check(const Memcpy3DParams& p) {
  return p.height == 1 && p.depth == 1 && p.from.kind <= 2 && p.to.kind <= 2 ? kSuccess : kNotSupported;
}
CudaResult check(const HostParameters& p) { return p.f ? kSuccess : kInvalidValue; }
CudaResult check(const Graph& child) { return alive<Graph>(&child) ? kSuccess : kInvalidValue; }

int add(void** made, void* handle, Step step) {
  Graph* graph = alive<Graph>(handle);
  if (!made || !graph) return kInvalidValue;
  graph->nodes.push_back(Handles<Node>::all().add(std::make_unique<Node>(Node{std::move(step)})));
  return *made = graph->nodes.back(), kSuccess;
}
template <class P> int add(void** made, void* graph, const P* parameters) {
  if (!parameters || !made || !alive<Graph>(graph)) return kInvalidValue;
  if (CudaResult wrong = check(*parameters)) return wrong;
  return add(made, graph, step_of(*parameters));
}
template <class F> int with_entry(void* in, const void* node, F f) {
  Executable* graph = alive<Executable>(in);
  Executable::Entry* entry = graph ? graph->find(node) : nullptr;
  return entry ? (f(*entry), kSuccess) : kInvalidValue;
}
template <class P> int update_node(void* in, const void* node, const P* parameters) {
  if (!parameters || !alive<Executable>(in)) return kInvalidValue;
  if (CudaResult wrong = check(*parameters)) return wrong;
  return with_entry(in, node, [=](Executable::Entry& entry) { entry.step = step_of(*parameters); });
}
// What is known of a child is its handle alone, until it was found alive.
const Graph* graph_at(const void* handle) { return static_cast<const Graph*>(handle); }

}  // namespace

API int cuGraphCreate(void** made, unsigned flags) {
  if (!made || flags) return kInvalidValue;
  return *made = Handles<Graph>::all().add(std::make_unique<Graph>()), kSuccess;
}
API int cuGraphDestroy(void* graph) { return Handles<Graph>::all().take(graph) ? kSuccess : kInvalidValue; }
API int cuGraphAddEmptyNode(void** made, void* graph, void* const*, size_t) {
  return add(made, graph, [](void*) { return int(kSuccess); });
}
API int cuGraphAddKernelNode_v2(void** made, void* graph, void* const*, size_t, const KernelParameters* p) {
  return add(made, graph, p);
}
API int cuGraphAddKernelNode(void** made, void* graph, void* const*, size_t, const KernelParameters* p) {
  return add(made, graph, p);
}
API int cuGraphAddMemsetNode(void** made, void* graph, void* const*, size_t, const FillParameters* p, void*) {
  return add(made, graph, p);
}
API int cuGraphAddMemcpyNode(void** made, void* graph, void* const*, size_t, const Memcpy3DParams* p, void*) {
  return add(made, graph, p);
}
API int cuGraphAddHostNode(void** made, void* graph, void* const*, size_t, const HostParameters* p) {
  return add(made, graph, p);
}
API int cuGraphAddChildGraphNode(void** made, void* graph, void* const*, size_t, const void* child) {
  return add(made, graph, graph_at(child));
}
API int cuGraphGetNodes(void* handle, void** nodes, size_t* count) {
  const Graph* graph = alive<Graph>(handle);
  if (!graph || !count) return kInvalidValue;
  for (size_t k = 0; nodes && k < *count && k < graph->nodes.size(); k++) nodes[k] = graph->nodes[k];
  return *count = graph->nodes.size(), kSuccess;
}
API int cuGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return alive<Graph>(graph) && path ? kSuccess : kInvalidValue;
}
API int cuGraphKernelNodeSetAttribute(void* node, int, const void*) { return alive<Node>(node) ? kSuccess : kInvalidValue; }

API int cuGraphInstantiateWithFlags(void** made, void* handle, uint64_t) {
  const Graph* graph = alive<Graph>(handle);
  if (!graph || !made) return kInvalidValue;
  auto whole = std::make_unique<Executable>();
  whole->take(*graph);
  return *made = Handles<Executable>::all().add(std::move(whole)), kSuccess;
}
API int cuGraphInstantiate_v2(void** made, void* graph, void*, char*, size_t) {
  return cuGraphInstantiateWithFlags(made, graph, 0);
}
API int cuGraphExecDestroy(void* graph) { return Handles<Executable>::all().take(graph) ? kSuccess : kInvalidValue; }
API int cuGraphExecKernelNodeSetParams_v2(void* in, void* node, const KernelParameters* p) { return update_node(in, node, p); }
API int cuGraphExecKernelNodeSetParams(void* in, void* node, const KernelParameters* p) { return update_node(in, node, p); }
API int cuGraphExecMemsetNodeSetParams(void* in, void* node, const FillParameters* p, void*) {
  return update_node(in, node, p);
}
API int cuGraphExecMemcpyNodeSetParams(void* in, void* node, const Memcpy3DParams* p, void*) {
  return update_node(in, node, p);
}
API int cuGraphExecHostNodeSetParams(void* in, void* node, const HostParameters* p) { return update_node(in, node, p); }
API int cuGraphExecChildGraphNodeSetParams(void* in, void* node, const void* child) {
  return update_node(in, node, graph_at(child));
}
API int cuGraphNodeSetEnabled(void* in, void* node, unsigned enabled) {
  return with_entry(in, node, [=](Executable::Entry& entry) { entry.enabled = enabled; });
}
API int cuGraphUpload(void* graph, void* stream) {
  return !alive<Executable>(graph) ? kInvalidValue : stream_of(stream) ? kSuccess : kInvalidHandle;
}
API int cuGraphLaunch(void* handle, void* stream) {
  const Executable* graph = alive<Executable>(handle);
  return !graph ? kInvalidValue : stream_of(stream) ? graph->run(stream) : kInvalidHandle;
}
