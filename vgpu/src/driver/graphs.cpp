// Graphs of kernels, copies, fills and host functions.  A node runs after its dependencies and before nothing else: each
// branch has a stream of its own, and events put them in order, so that VGPU_CHECK=order sees which nodes may overlap.
#include "graphs.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "api.h"
#include "capture.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

// What was instantiated: steps of its own, which may be exchanged without a change of the graph.
class Executable {
 public:
  struct Entry {
    const Node* of;
    Step step;
    std::vector<size_t> after;
    size_t branch = 0;
    bool enabled = true;
  };

  explicit Executable(const Graph& graph) {
    std::map<const Node*, size_t> index;
    for (const Node* node : graph.nodes) {
      index[node] = entries_.size();
      Entry made{node, node->step, {}};
      for (const Node* before : node->after) made.after.push_back(index.at(before));
      add(std::move(made));
    }
  }
  Executable(const Executable& other) {
    for (const Entry& one : other.entries_) add(one);
  }
  ~Executable() {
    for (Stream* branch : branches_) Handles<Stream>::all().take(branch);
  }
  Entry* find(const void* node) {
    for (Entry& one : entries_)
      if (one.of == node) return &one;
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
  // That of a dependency which is the last of its branch, or a new one.  The first branch is the stream of the launch.
  void choose_branch(size_t k) {
    std::vector<size_t>& after = entries_[k].after;
    auto before = std::find_if(after.begin(), after.end(), [this](size_t one) { return last_[entries_[one].branch] == one; });
    entries_[k].branch = before != after.end() ? entries_[*before].branch : last_.size();
    if (before == after.end()) add_branch();
    last_[entries_[k].branch] = k;
    for (size_t one : after)
      if (entries_[one].branch != entries_[k].branch) done_[one];
  }
  void add_branch() {
    if (!last_.empty()) {
      auto made = std::make_unique<Stream>();
      made->flags = kNonBlocking;
      branches_.push_back(Handles<Stream>::all().add(std::move(made)));
      ends_.emplace_back();
    }
    last_.push_back(0);
  }
  int run(size_t k, const std::vector<void*>& streams) {
    const Entry& entry = entries_[k];
    void* stream = streams[entry.branch];
    for (size_t before : entry.after)
      if (entries_[before].branch != entry.branch) wait(*stream_of(stream), done_.at(before));
    if (int error = entry.enabled ? entry.step(stream) : kSuccess) return error;
    auto awaited = done_.find(k);
    if (awaited != done_.end()) record(awaited->second, *stream_of(stream));
    return kSuccess;
  }

  std::vector<Entry> entries_;
  std::vector<size_t> last_;       // the last entry of each branch
  std::vector<Stream*> branches_;  // but for the first
  Event start_;
  std::deque<Event> ends_;
  std::map<size_t, Event> done_;  // of entries that another branch waits for
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

Step step_of(const FillParameters& given) {
  return [given](void* stream) {
    return fill_on(stream, {given.at, given.pitch, given.value, given.element, given.width, given.height});
  };
}
Step step_of(const Memcpy3DParams& given) {
  return [given](void* stream) { return copy_box_in_order(stream, given); };
}
Step step_of(const HostParameters& given) {
  return [given](void* stream) { return cuLaunchHostFunc(stream, given.f, given.data); };
}
Step step_of(const std::shared_ptr<Executable>& child) {
  return [child](void* stream) { return child->run(stream); };
}
Step step_of(const Graph& child) { return step_of(std::make_shared<Executable>(child)); }

// kInvalidValue, kNotSupported: no node is made of that.
CudaResult check(const FillParameters& p) {
  return p.element == 1 || p.element == 2 || p.element == 4 ? kSuccess : kInvalidValue;
}
CudaResult check(const Memcpy3DParams& p) {
  return p.height == 1 && p.depth == 1 && p.from.kind <= 2 && p.to.kind <= 2 ? kSuccess : kNotSupported;
}
CudaResult check(const HostParameters& p) { return p.f ? kSuccess : kInvalidValue; }
CudaResult check(const Graph& child) { return alive<Graph>(&child) ? kSuccess : kInvalidValue; }

CudaResult make(Step& step, const KernelParameters& p) {
  Kernel* kernel = alive<Kernel>(p.kernel);
  if (!kernel || p.extra) return kernel ? kNotSupported : kInvalidValue;
  Configuration how{{}, {}, p.shared};
  std::copy_n(p.grid, 3, how.grid), std::copy_n(p.block, 3, how.block);
  const CudaResult result = make_step(step, *kernel, how, Arguments{p.arguments});
  return result == kInvalidConfiguration ? kInvalidValue : result;
}
template <class P> CudaResult make(Step& step, const P& parameters) {
  if (CudaResult wrong = check(parameters)) return wrong;
  return step = step_of(parameters), kSuccess;
}

struct Dependencies {
  Node* const* nodes;
  size_t count;
};
int add(void** made, void* handle, const Dependencies& after, Step step) {
  Graph* graph = alive<Graph>(handle);
  if (!made || !graph || !graph->holds(after.nodes, after.count)) return kInvalidValue;
  return *made = graph->add(std::move(step), Nodes(after.nodes, after.nodes + after.count)), kSuccess;
}
template <class P> int add(void** made, void* graph, const Dependencies& after, const P* parameters) {
  Step step;
  if (!parameters || !made || !alive<Graph>(graph)) return kInvalidValue;
  if (CudaResult wrong = make(step, *parameters)) return wrong;
  return add(made, graph, after, std::move(step));
}
template <class F> int with_entry(void* in, const void* node, F f) {
  Executable* graph = alive<Executable>(in);
  Executable::Entry* entry = graph ? graph->find(node) : nullptr;
  return entry ? (f(*entry), kSuccess) : kInvalidValue;
}
template <class P> int update_node(void* in, const void* node, const P* parameters) {
  Step step;
  if (!parameters || !alive<Executable>(in)) return kInvalidValue;
  if (CudaResult wrong = make(step, *parameters)) return wrong;
  return with_entry(in, node, [&](Executable::Entry& entry) { entry.step = std::move(step); });
}
// What is known of a child is its handle alone, until it was found alive.
const Graph* graph_at(const void* handle) { return static_cast<const Graph*>(handle); }

}  // namespace

namespace vgpu {

CudaResult make_step(Step& step, Kernel& kernel, const Configuration& how, const Arguments& given) {
  std::vector<uint8_t> packed;
  if (CudaResult wrong = Device::get().pack(packed, kernel, how, given)) return wrong;
  step = [handle = &kernel, how, packed](void* stream) -> int {
    Kernel* kernel = alive<Kernel>(handle);
    return kernel ? launch(*kernel, how, {nullptr, packed.data(), packed.size()}, stream) : kInvalidHandle;
  };
  return kSuccess;
}

}  // namespace vgpu

API int cuGraphCreate(void** made, unsigned flags) {
  if (!made || flags) return kInvalidValue;
  return *made = Handles<Graph>::all().add(std::make_unique<Graph>()), kSuccess;
}
API int cuGraphDestroy(void* graph) { return Handles<Graph>::all().take(graph) ? kSuccess : kInvalidValue; }
API int cuGraphAddEmptyNode(void** made, void* graph, Node* const* after, size_t count) {
  return add(made, graph, {after, count}, Step([](void*) { return int(kSuccess); }));
}
API int cuGraphAddKernelNode_v2(void** made, void* graph, Node* const* after, size_t count, const KernelParameters* p) {
  return add(made, graph, {after, count}, p);
}
API int cuGraphAddKernelNode(void** made, void* graph, Node* const* after, size_t count, const KernelParameters* p) {
  return add(made, graph, {after, count}, p);
}
API int cuGraphAddMemsetNode(void** made, void* graph, Node* const* after, size_t count, const FillParameters* p, void*) {
  return add(made, graph, {after, count}, p);
}
API int cuGraphAddMemcpyNode(void** made, void* graph, Node* const* after, size_t count, const Memcpy3DParams* p, void*) {
  return add(made, graph, {after, count}, p);
}
API int cuGraphAddHostNode(void** made, void* graph, Node* const* after, size_t count, const HostParameters* p) {
  return add(made, graph, {after, count}, p);
}
API int cuGraphAddChildGraphNode(void** made, void* graph, Node* const* after, size_t count, const void* child) {
  return add(made, graph, {after, count}, graph_at(child));
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
  return *made = Handles<Executable>::all().add(std::make_unique<Executable>(*graph)), kSuccess;
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
API int cuGraphLaunch(void* handle, void* on) {
  Executable* graph = alive<Executable>(handle);
  Stream* stream = stream_of(on);
  if (!graph || !stream) return graph ? kInvalidHandle : kInvalidValue;
  auto child = [=](Step& step) { return step = step_of(std::make_shared<Executable>(*graph)), kSuccess; };
  if (auto taken = capture_made(*stream, child)) return *taken;
  return graph->run(on);
}
