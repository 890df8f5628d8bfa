// Graphs of kernels, copies, fills and host functions.  Each branch of a graph has a stream of its own, and events order the
// branches, so that VGPU_CHECK=order knows which nodes may overlap.
#include "graphs.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "api.h"
#include "capture.h"
#include "handles.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

// An instantiated graph (CUgraphExec).  Its steps may be replaced without changing the graph.
class Executable {
 public:
  struct Entry {
    const Node* node;
    Step step;
    std::vector<size_t> dependencies;  // indices of entries
    size_t branch = 0;
    bool enabled = true;
  };

  explicit Executable(const Nodes& nodes) {  // each behind its dependencies
    std::map<const Node*, size_t> index;
    for (const Node* node : nodes) {
      index[node] = entries_.size();
      Entry entry{node, node->step, {}};
      for (const Node* dependency : node->dependencies) entry.dependencies.push_back(index.at(dependency));
      add(std::move(entry));
    }
  }
  Executable(const Executable& other) {
    for (const Entry& entry : other.entries_) add(entry);
  }
  ~Executable() {
    for (Stream* branch : branches_) Handles<Stream>::all().remove(branch);
  }
  Entry* find(const void* node) {
    for (Entry& entry : entries_)
      if (entry.node == node) return &entry;
    return nullptr;
  }
  int run(void* stream) {
    std::vector<void*> streams{stream};
    streams.insert(streams.end(), branches_.begin(), branches_.end());
    if (!branches_.empty()) record(start_, *stream_of(stream));
    for (Stream* branch : branches_) wait(*branch, start_);
    for (size_t k = 0; k < entries_.size(); k++)
      if (int error = run(k, streams)) return error;
    for (size_t k = 1; k < streams.size(); k++) {
      record(ends_[k - 1], *stream_of(streams[k]));
      wait(*stream_of(stream), ends_[k - 1]);
    }
    return kSuccess;
  }

 private:
  void add(Entry entry) {
    entries_.push_back(std::move(entry));
    choose_branch(entries_.size() - 1);
  }
  // Assigns the branch of a dependency that is the last entry of its branch, or a new branch.  The first branch is the stream of
  // the launch.
  void choose_branch(size_t k) {
    std::vector<size_t>& dependencies = entries_[k].dependencies;
    auto dependency = std::find_if(dependencies.begin(), dependencies.end(),
                                   [this](size_t index) { return last_[entries_[index].branch] == index; });
    entries_[k].branch = dependency != dependencies.end() ? entries_[*dependency].branch : last_.size();
    if (dependency == dependencies.end()) add_branch();
    last_[entries_[k].branch] = k;
    for (size_t index : dependencies)
      if (entries_[index].branch != entries_[k].branch) completion_events_[index];
  }
  void add_branch() {
    if (!last_.empty()) {
      auto stream = std::make_unique<Stream>();
      stream->flags = kNonBlocking;
      branches_.push_back(Handles<Stream>::all().add(std::move(stream)));
      ends_.emplace_back();
    }
    last_.push_back(0);
  }
  int run(size_t k, const std::vector<void*>& streams) {
    const Entry& entry = entries_[k];
    void* stream = streams[entry.branch];
    for (size_t dependency : entry.dependencies)
      if (entries_[dependency].branch != entry.branch) wait(*stream_of(stream), completion_events_.at(dependency));
    if (int error = entry.enabled ? entry.step(stream) : kSuccess) return error;
    auto event = completion_events_.find(k);
    if (event != completion_events_.end()) record(event->second, *stream_of(stream));
    return kSuccess;
  }

  std::vector<Entry> entries_;
  std::vector<size_t> last_;       // the last entry of each branch
  std::vector<Stream*> branches_;  // streams of all branches but the first
  Event start_;
  std::deque<Event> ends_;
  std::map<size_t, Event> completion_events_;  // of entries for which other branches wait
};

// Instantiates a graph, with each node behind its dependencies; nullptr: they form a circle.
std::unique_ptr<Executable> instantiate(const Graph& graph) {
  Nodes ordered, remaining = graph.nodes;
  std::set<const Node*> done;
  while (!remaining.empty()) {
    Nodes later;
    for (Node* node : remaining) {
      const bool is_next = std::all_of(node->dependencies.begin(), node->dependencies.end(),
                                       [&](const Node* dependency) { return done.count(dependency); });
      if (is_next) ordered.push_back(node), done.insert(node);
      else later.push_back(node);
    }
    if (later.size() == remaining.size()) return nullptr;
    remaining = std::move(later);
  }
  return std::make_unique<Executable>(ordered);
}

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

Step step_of(const FillParameters& params) {
  return [params](void* stream) {
    return fill_on(stream, {params.at, params.pitch, params.value, params.element, params.width, params.height});
  };
}
Step step_of(const HostParameters& params) {
  return [params](void* stream) { return cuLaunchHostFunc(stream, params.f, params.data); };
}
Step step_of(const std::shared_ptr<Executable>& child) {
  return [child](void* stream) { return child->run(stream); };
}

// Return kInvalidValue if a node cannot have these parameters.
CudaResult check(const FillParameters& params) {
  return params.element == 1 || params.element == 2 || params.element == 4 ? kSuccess : kInvalidValue;
}
CudaResult check(const HostParameters& params) { return params.f ? kSuccess : kInvalidValue; }

CudaResult make_node_step(Step& step, const KernelParameters& params) {
  Kernel* kernel = find_alive<Kernel>(params.kernel);
  if (!kernel || params.extra) return kernel ? kNotSupported : kInvalidValue;
  Configuration configuration{{}, {}, params.shared};
  std::copy_n(params.grid, 3, configuration.grid), std::copy_n(params.block, 3, configuration.block);
  const CudaResult result = make_step(step, *kernel, configuration, Arguments{params.arguments});
  return result == kInvalidConfiguration ? kInvalidValue : result;
}
CudaResult make_node_step(Step& step, const Memcpy3DParams& request) {
  Memcpy3DParams params = request;
  if (CudaResult error = prepare_box_copy(params)) return error;
  return step = [params](void* stream) { return copy_box_in_order(stream, params); }, kSuccess;
}
CudaResult make_node_step(Step& step, const Graph& child) {
  std::shared_ptr<Executable> executable = find_alive<Graph>(&child) ? instantiate(child) : nullptr;
  return executable ? (step = step_of(executable), kSuccess) : kInvalidValue;
}
template <class P> CudaResult make_node_step(Step& step, const P& parameters) {
  if (CudaResult error = check(parameters)) return error;
  return step = step_of(parameters), kSuccess;
}

struct Dependencies {
  Node* const* nodes;
  size_t count;
};
template <class P> int add_node(void** node, void* graph, const Dependencies& dependencies, const P* parameters) {
  Step step;
  if (!parameters || !node || !find_alive<Graph>(graph)) return kInvalidValue;
  if (CudaResult error = make_node_step(step, *parameters)) return error;
  return vgpu::add_node(node, graph, dependencies.nodes, dependencies.count, std::move(step));
}
template <class F> int with_entry(void* executable, const void* node, F f) {
  Executable* graph = find_alive<Executable>(executable);
  Executable::Entry* entry = graph ? graph->find(node) : nullptr;
  return entry ? (f(*entry), kSuccess) : kInvalidValue;
}
template <class P> int update_node(void* executable, const void* node, const P* parameters) {
  Step step;
  if (!parameters || !find_alive<Executable>(executable)) return kInvalidValue;
  if (CudaResult error = make_node_step(step, *parameters)) return error;
  return vgpu::update_node(executable, node, std::move(step));
}
// The handle is not dereferenced before it was checked.
const Graph* graph_at(const void* handle) { return static_cast<const Graph*>(handle); }

}  // namespace

namespace vgpu {

int add_node(void** node, void* handle, Node* const* dependencies, size_t count, Step step) {
  Graph* graph = find_alive<Graph>(handle);
  if (!node || !graph || !graph->contains(dependencies, count)) return kInvalidValue;
  return *node = graph->add(std::move(step), Nodes(dependencies, dependencies + count)), kSuccess;
}
int update_node(void* executable, const void* node, Step step) {
  return with_entry(executable, node, [&](Executable::Entry& entry) { entry.step = std::move(step); });
}

CudaResult make_step(Step& step, Kernel& kernel, const Configuration& configuration, const Arguments& arguments) {
  std::vector<uint8_t> packed;
  if (CudaResult error = Device::get().pack(packed, kernel, configuration, arguments))
    return note_refused_launch(kernel.name), error;
  step = [handle = &kernel, configuration, packed](void* stream) -> int {
    Kernel* kernel = find_alive<Kernel>(handle);
    return kernel ? launch(*kernel, configuration, {nullptr, packed.data(), packed.size()}, stream) : kInvalidHandle;
  };
  return kSuccess;
}

}  // namespace vgpu

API int cuGraphCreate(void** graph, unsigned flags) {
  if (!graph || flags) return kInvalidValue;
  return *graph = Handles<Graph>::all().add(std::make_unique<Graph>()), kSuccess;
}
API int cuGraphDestroy(void* graph) { return Handles<Graph>::all().remove(graph) ? kSuccess : kInvalidValue; }
API int cuGraphAddEmptyNode(void** node, void* graph, Node* const* dependencies, size_t count) {
  return add_node(node, graph, dependencies, count, [](void*) { return int(kSuccess); });
}
API int cuGraphAddKernelNode_v2(void** node, void* graph, Node* const* dependencies, size_t count,
                                const KernelParameters* params) {
  return add_node(node, graph, {dependencies, count}, params);
}
API int cuGraphAddKernelNode(void** node, void* graph, Node* const* dependencies, size_t count,
                             const KernelParameters* params) {
  return add_node(node, graph, {dependencies, count}, params);
}
API int cuGraphAddMemsetNode(void** node, void* graph, Node* const* dependencies, size_t count, const FillParameters* params,
                             void*) {
  return add_node(node, graph, {dependencies, count}, params);
}
API int cuGraphAddMemcpyNode(void** node, void* graph, Node* const* dependencies, size_t count, const Memcpy3DParams* params,
                             void*) {
  return add_node(node, graph, {dependencies, count}, params);
}
API int cuGraphAddHostNode(void** node, void* graph, Node* const* dependencies, size_t count, const HostParameters* params) {
  return add_node(node, graph, {dependencies, count}, params);
}
API int cuGraphAddChildGraphNode(void** node, void* graph, Node* const* dependencies, size_t count, const void* child) {
  return add_node(node, graph, {dependencies, count}, graph_at(child));
}
API int cuGraphAddDependencies(void* handle, Node* const* from, Node* const* to, size_t count) {
  Graph* graph = find_alive<Graph>(handle);
  if (!graph || !graph->contains(from, count) || !graph->contains(to, count)) return kInvalidValue;
  for (size_t k = 0; k < count; k++) to[k]->dependencies.push_back(from[k]);
  return kSuccess;
}
API int cuGraphAddDependencies_v2(void* graph, Node* const* from, Node* const* to, const void*, size_t count) {
  return cuGraphAddDependencies(graph, from, to, count);
}
API int cuGraphGetNodes(void* handle, void** nodes, size_t* count) {
  const Graph* graph = find_alive<Graph>(handle);
  if (!graph || !count) return kInvalidValue;
  for (size_t k = 0; nodes && k < *count && k < graph->nodes.size(); k++) nodes[k] = graph->nodes[k];
  return *count = graph->nodes.size(), kSuccess;
}
API int cuGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return find_alive<Graph>(graph) && path ? kSuccess : kInvalidValue;
}
API int cuGraphKernelNodeSetAttribute(void* node, int, const void*) {
  return find_alive<Node>(node) ? kSuccess : kInvalidValue;
}

API int cuGraphInstantiateWithFlags(void** executable, void* handle, uint64_t) {
  const Graph* graph = find_alive<Graph>(handle);
  std::unique_ptr<Executable> instance = graph && executable ? instantiate(*graph) : nullptr;
  return instance ? (*executable = Handles<Executable>::all().add(std::move(instance)), kSuccess) : kInvalidValue;
}
API int cuGraphInstantiate_v2(void** executable, void* graph, void*, char*, size_t) {
  return cuGraphInstantiateWithFlags(executable, graph, 0);
}
API int cuGraphExecDestroy(void* graph) { return Handles<Executable>::all().remove(graph) ? kSuccess : kInvalidValue; }
API int cuGraphExecKernelNodeSetParams_v2(void* executable, void* node, const KernelParameters* params) {
  return update_node(executable, node, params);
}
API int cuGraphExecKernelNodeSetParams(void* executable, void* node, const KernelParameters* params) {
  return update_node(executable, node, params);
}
API int cuGraphExecMemsetNodeSetParams(void* executable, void* node, const FillParameters* params, void*) {
  return update_node(executable, node, params);
}
API int cuGraphExecMemcpyNodeSetParams(void* executable, void* node, const Memcpy3DParams* params, void*) {
  return update_node(executable, node, params);
}
API int cuGraphExecHostNodeSetParams(void* executable, void* node, const HostParameters* params) {
  return update_node(executable, node, params);
}
API int cuGraphExecChildGraphNodeSetParams(void* executable, void* node, const void* child) {
  return update_node(executable, node, graph_at(child));
}
API int cuGraphNodeSetEnabled(void* executable, void* node, unsigned enabled) {
  return with_entry(executable, node, [=](Executable::Entry& entry) { entry.enabled = enabled; });
}
API int cuGraphUpload(void* graph, void* stream) {
  return !find_alive<Executable>(graph) ? kInvalidValue : stream_of(stream) ? kSuccess : kInvalidHandle;
}
API int cuGraphLaunch(void* handle, void* stream_handle) {
  Executable* graph = find_alive<Executable>(handle);
  Stream* stream = stream_of(stream_handle);
  if (!graph || !stream) return graph ? kInvalidHandle : kInvalidValue;
  auto child = [=](Step& step) { return step = step_of(std::make_shared<Executable>(*graph)), kSuccess; };
  if (auto capture_result = capture_with(*stream, child)) return *capture_result;
  return graph->run(stream_handle);
}

PER_THREAD(cuGraphLaunch, _ptsz);
PER_THREAD(cuGraphUpload, _ptsz);
