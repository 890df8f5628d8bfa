// Graphs of kernels, copies and fills (XLA launches what it compiled through them): a list of steps, done one after the
// other in the order in which they were added, which never puts one before what it depends on.
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "api.h"

using namespace vgpu;

namespace {

using Step = std::function<int()>;
struct Node { Step step; };
struct Graph { std::vector<std::unique_ptr<Node>> nodes; };

// What was instantiated: steps of its own, which may be exchanged without a change of the graph.
struct Executable {
  struct Entry { const Node* of; Step step; bool enabled = true; };
  std::vector<Entry> entries;

  Entry* find(const Node* node) {
    for (Entry& one : entries) if (one.of == node) return &one;
    return nullptr;
  }
  void take(const Graph& graph) {
    entries.clear();
    for (const auto& node : graph.nodes) entries.push_back({node.get(), node->step});
  }
  int run() const {
    for (const Entry& one : entries)
      if (int error = one.enabled ? one.step() : kSuccess) return error;
    return kSuccess;
  }
};

struct KernelParameters {  // CUDA_KERNEL_NODE_PARAMS
  Kernel* kernel;
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

// The arguments are the caller's: they are copied as the kernel declares them.
Step step_of(const KernelParameters& given) {
  std::vector<uint8_t> packed(given.kernel->function ? given.kernel->function->parameter_bytes : 0);
  if (given.arguments && given.kernel->function)
    for (size_t k = 0; k < given.kernel->function->parameters.size(); k++) {
      const ptx::Parameter& one = given.kernel->function->parameters[k];
      std::memcpy(&packed[one.offset], given.arguments[k], one.size);
    }
  return [given, packed] {
    Device& device = Device::get();
    std::lock_guard<std::mutex> hold(device.lock());
    return device.launch(*given.kernel, given.grid, given.block, given.shared, nullptr, packed.data(), packed.size());
  };
}
Step step_of(const FillParameters& given) {
  return [given]() -> int {
    Result error = filled_rows(given.at, given.pitch, &given.value, given.element, given.width, given.height);
    return error ? error : Device::get().sticky();
  };
}
Step step_of(const Box& given) {
  return [given] { return cuMemcpy3D_v2(&given); };
}
Step step_of(const Graph& child) {
  auto whole = std::make_shared<Executable>();
  whole->take(child);
  return [whole] { return whole->run(); };
}

bool known(const KernelParameters& p) { return p.kernel && !p.extra; }
bool known(const FillParameters& p) { return p.element == 1 || p.element == 2 || p.element == 4; }
bool known(const Box& p) { return p.height == 1 && p.depth == 1 && p.from.kind <= 2 && p.to.kind <= 2; }

int add(Node** made, Graph* graph, Step step) {
  graph->nodes.push_back(std::make_unique<Node>(Node{std::move(step)}));
  return *made = graph->nodes.back().get(), kSuccess;
}
template <class P> int add_known(Node** made, Graph* graph, const P* parameters) {
  return known(*parameters) ? add(made, graph, step_of(*parameters)) : kNotSupported;
}
int exchange(Executable* in, const Node* node, Step step) {
  Executable::Entry* entry = in->find(node);
  return entry ? (entry->step = std::move(step), kSuccess) : kInvalidValue;
}
template <class P> int exchange_known(Executable* in, const Node* node, const P* parameters) {
  return known(*parameters) ? exchange(in, node, step_of(*parameters)) : kNotSupported;
}

}  // namespace

API int cuGraphCreate(Graph** made, unsigned) { return *made = new Graph, kSuccess; }
API int cuGraphDestroy(Graph* graph) { return delete graph, kSuccess; }
API int cuGraphAddEmptyNode(Node** made, Graph* graph, Node* const*, size_t) {
  return add(made, graph, [] { return int(kSuccess); });
}
API int cuGraphAddKernelNode_v2(Node** made, Graph* graph, Node* const*, size_t, const KernelParameters* p) {
  return add_known(made, graph, p);
}
API int cuGraphAddKernelNode(Node** made, Graph* graph, Node* const*, size_t, const KernelParameters* p) {
  return add_known(made, graph, p);
}
API int cuGraphAddMemsetNode(Node** made, Graph* graph, Node* const*, size_t, const FillParameters* p, void*) {
  return add_known(made, graph, p);
}
API int cuGraphAddMemcpyNode(Node** made, Graph* graph, Node* const*, size_t, const Box* p, void*) {
  return add_known(made, graph, p);
}
API int cuGraphAddChildGraphNode(Node** made, Graph* graph, Node* const*, size_t, const Graph* child) {
  return add(made, graph, step_of(*child));
}
API int cuGraphGetNodes(Graph* graph, Node** nodes, size_t* count) {
  for (size_t k = 0; nodes && k < *count && k < graph->nodes.size(); k++) nodes[k] = graph->nodes[k].get();
  return *count = graph->nodes.size(), kSuccess;
}
API int cuGraphDebugDotPrint(Graph*, const char*, unsigned) { return kSuccess; }
API int cuGraphKernelNodeSetAttribute(Node*, int, const void*) { return kSuccess; }

API int cuGraphInstantiateWithFlags(Executable** made, Graph* graph, uint64_t) {
  *made = new Executable;
  return (*made)->take(*graph), kSuccess;
}
API int cuGraphInstantiate_v2(Executable** made, Graph* graph, void*, char*, size_t) {
  return cuGraphInstantiateWithFlags(made, graph, 0);
}
API int cuGraphExecDestroy(Executable* graph) { return delete graph, kSuccess; }
API int cuGraphExecKernelNodeSetParams_v2(Executable* in, Node* node, const KernelParameters* p) {
  return exchange_known(in, node, p);
}
API int cuGraphExecKernelNodeSetParams(Executable* in, Node* node, const KernelParameters* p) {
  return exchange_known(in, node, p);
}
API int cuGraphExecMemsetNodeSetParams(Executable* in, Node* node, const FillParameters* p, void*) {
  return exchange_known(in, node, p);
}
API int cuGraphExecMemcpyNodeSetParams(Executable* in, Node* node, const Box* p, void*) {
  return exchange_known(in, node, p);
}
API int cuGraphExecChildGraphNodeSetParams(Executable* in, Node* node, const Graph* child) {
  return exchange(in, node, step_of(*child));
}
API int cuGraphNodeSetEnabled(Executable* in, Node* node, unsigned enabled) {
  Executable::Entry* entry = in->find(node);
  return entry ? (entry->enabled = enabled, kSuccess) : kInvalidValue;
}
API int cuGraphUpload(Executable*, void*) { return kSuccess; }
API int cuGraphLaunch(Executable* graph, void*) { return graph->run(); }
