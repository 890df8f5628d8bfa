// Active captures, their calls, and a few other calls of streams.
#include "capture.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "api.h"

using namespace vgpu;

namespace {

enum Mode : int { kGlobal, kThreadLocal, kRelaxed };           // CUstreamCaptureMode
enum State : int { kNotCapturing, kCapturing, kInvalidated };  // CUstreamCaptureStatus

struct Capture {
  uint64_t id;
  Graph* graph;
  bool owns_graph;
  const Stream* origin;
  Mode mode;
  const std::thread::id thread = std::this_thread::get_id();
  bool invalid = false;
  // Initialized, as g++ warns of an initializer list that leaves out a member without one.
  // NOLINTBEGIN(readability-redundant-member-init)
  std::map<const Stream*, Nodes> streams{};  // captured streams, with the dependencies of their next nodes
  std::map<uint32_t, Nodes> events{};  // numbers of recorded events, with the dependencies of streams that wait for them
  // NOLINTEND(readability-redundant-member-init)

  State state() const { return invalid ? kInvalidated : kCapturing; }
  bool is_of_this_thread() const { return thread == std::this_thread::get_id(); }
  bool is_blocking() const {
    return std::any_of(streams.begin(), streams.end(), [](const auto& entry) { return entry.first->is_blocking(); });
  }
  CudaResult invalidate(CudaResult error) { return invalid = true, error; }
  // Returns whether all captured streams were joined: whether the origin's last nodes depend on all nodes.
  bool is_joined() const {
    std::set<const Node*> reached;
    Nodes pending = streams.at(origin);
    while (!pending.empty()) {
      Node* node = pending.back();
      pending.pop_back();
      if (reached.insert(node).second) pending.insert(pending.end(), node->dependencies.begin(), node->dependencies.end());
    }
    for (const auto& [stream, last] : streams)
      for (const Node* node : last)
        if (!reached.count(node)) return false;
    return true;
  }
};

void add_missing(Nodes& nodes, const Nodes& added) {
  for (Node* node : added)
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

class Captures {
 public:
  static Captures& get() {
    static Captures* captures = new Captures;
    return *captures;
  }

  std::mutex lock;
  bool is_any_active() const { return count_; }
  Capture* of(const Stream& stream) {
    return find([&](const Capture& capture) { return capture.streams.count(&stream) != 0; });
  }
  Capture* of(const Event& event) {
    return find([&](const Capture& capture) { return capture.events.count(event.number) != 0; });
  }
  const std::vector<std::unique_ptr<Capture>>& all() const { return active_; }
  void begin(std::unique_ptr<Capture> capture) { active_.push_back(std::move(capture)), count_ = active_.size(); }
  void end(const Capture* capture) {
    active_.erase(
        std::find_if(active_.begin(), active_.end(), [=](const auto& candidate) { return candidate.get() == capture; }));
    count_ = active_.size();
  }
  // Returns a capture with a blocking stream, for which `stream` would wait if it is the legacy default stream.
  Capture* find_implicitly_blocking(const Stream& stream) {
    if (&stream != &legacy_stream()) return nullptr;
    return find([](const Capture& capture) { return !capture.invalid && capture.is_blocking(); });
  }

 private:
  template <class F> Capture* find(F f) {
    for (const auto& capture : active_)
      if (f(*capture)) return capture.get();
    return nullptr;
  }
  std::vector<std::unique_ptr<Capture>> active_;
  std::atomic<size_t> count_{0};
};

thread_local Mode thread_mode = kGlobal;

using Guard = std::lock_guard<std::mutex>;

// Returns f(capture), called with the lock held, if the stream is captured; an error if it would depend on a captured stream.
template <class F> std::optional<int> with_capture(const Stream& stream, F f) {
  Captures& captures = Captures::get();
  if (!captures.is_any_active()) return std::nullopt;
  Guard guard(captures.lock);
  if (Capture* capture = captures.find_implicitly_blocking(stream)) return capture->invalidate(kCaptureImplicit);
  Capture* capture = captures.of(stream);
  if (!capture) return std::nullopt;
  return capture->invalid ? kCaptureInvalidated : f(*capture);
}

}  // namespace

namespace vgpu {

bool is_anything_captured() { return Captures::get().is_any_active(); }

std::optional<int> add_node(Stream& stream, const std::function<CudaResult(Step&)>& make_step) {
  return with_capture(stream, [&](Capture& capture) {
    Step step;
    if (CudaResult error = make_step(step)) return error;
    Nodes& last = capture.streams[&stream];
    last = {capture.graph->add(std::move(step), last)};
    return kSuccess;
  });
}

std::optional<int> capture_record(const Event& event, Stream& stream) {
  std::optional<int> result = with_capture(stream, [&](Capture& capture) {
    capture.events[event.number] = capture.streams[&stream];
    return kSuccess;
  });
  if (!result && is_anything_captured()) {  // the event is no longer the one that was recorded in captures
    Guard guard(Captures::get().lock);
    for (const auto& active : Captures::get().all()) active->events.erase(event.number);
  }
  return result;
}

std::optional<int> capture_wait(Stream& stream, const Event& event) {
  Captures& captures = Captures::get();
  if (!captures.is_any_active()) return std::nullopt;
  Guard guard(captures.lock);
  if (Capture* blocking_capture = captures.find_implicitly_blocking(stream))
    return blocking_capture->invalidate(kCaptureImplicit);
  Capture *event_capture = captures.of(event), *stream_capture = captures.of(stream);
  if (!event_capture && !stream_capture) return std::nullopt;
  if ((event_capture && event_capture->invalid) || (stream_capture && stream_capture->invalid)) return kCaptureInvalidated;
  if (!event_capture) return event.recorded ? stream_capture->invalidate(kCaptureIsolation) : kSuccess;
  if (stream_capture && stream_capture != event_capture)
    return event_capture->invalidate(kCaptureMerge), stream_capture->invalidate(kCaptureMerge);
  if (&stream == &legacy_stream()) return event_capture->invalidate(kCaptureUnsupported);
  add_missing(event_capture->streams[&stream], event_capture->events[event.number]);
  return kSuccess;
}

CudaResult refuse_if_captured(const Stream& stream) {
  return static_cast<CudaResult>(
      with_capture(stream, [](Capture& capture) { return capture.invalidate(kCaptureUnsupported); }).value_or(kSuccess));
}

CudaResult refuse_if_captured(const Event& event) {
  if (!is_anything_captured()) return kSuccess;
  {
    Guard guard(Captures::get().lock);
    if (Capture* capture = Captures::get().of(event)) return capture->invalidate(kCapturedEvent);
  }
  return refuse_while_capturing();
}

// The modes decide which captures are concerned (cuThreadExchangeStreamCaptureMode).
CudaResult refuse_while_capturing() {
  if (!is_anything_captured() || thread_mode == kRelaxed) return kSuccess;
  CudaResult result = kSuccess;
  Guard guard(Captures::get().lock);
  for (const auto& capture : Captures::get().all()) {
    const bool is_own = capture->is_of_this_thread() && capture->mode != kRelaxed;
    if (is_own || (thread_mode == kGlobal && capture->mode == kGlobal)) result = capture->invalidate(kCaptureUnsupported);
  }
  return result;
}

CudaResult refuse_synchronous() {
  if (CudaResult error = refuse_if_captured(default_stream())) return error;
  return refuse_while_capturing();
}

void forget_captures_of(const Stream& stream) {
  Captures& captures = Captures::get();
  if (!captures.is_any_active()) return;
  Guard guard(captures.lock);
  Capture* capture = captures.of(stream);
  if (!capture) return;
  capture->invalid = true;
  capture->streams.erase(&stream);
  if (capture->origin == &stream) captures.end(capture);
}

}  // namespace vgpu

namespace {

int begin_capture(void* handle, Graph* graph, bool owns_graph, Nodes dependencies, int mode) {
  static std::atomic<uint64_t> last_id{0};
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (mode < kGlobal || mode > kRelaxed) return kInvalidValue;
  if (stream == &legacy_stream()) return kCaptureUnsupported;
  Captures& captures = Captures::get();
  Guard guard(captures.lock);
  if (captures.of(*stream)) return kIllegalState;
  auto capture = std::make_unique<Capture>(Capture{++last_id, graph, owns_graph, stream, static_cast<Mode>(mode)});
  capture->streams[stream] = std::move(dependencies);
  return captures.begin(std::move(capture)), kSuccess;
}

int end_capture(void* handle, void** graph) {
  if (!graph) return kInvalidValue;
  *graph = nullptr;
  const Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  Captures& captures = Captures::get();
  Guard guard(captures.lock);
  const Capture* capture = captures.of(*stream);
  if (!capture) return kIllegalState;
  if (capture->origin != stream) return kCaptureUnmatched;
  if (capture->mode != kRelaxed && !capture->is_of_this_thread()) return kCaptureWrongThread;
  const CudaResult result = capture->invalid ? kCaptureInvalidated : capture->is_joined() ? kSuccess : kCaptureUnjoined;
  if (result == kSuccess) *graph = capture->graph;
  else if (capture->owns_graph) Handles<Graph>::all().remove(capture->graph);
  return captures.end(capture), result;
}

// Outputs of cuStreamGetCaptureInfo; nullptr: not requested.
struct InfoOutputs {
  uint64_t* id = nullptr;
  void** graph = nullptr;
  const Node*** after = nullptr;
  size_t* count = nullptr;
};
int write_info(void* handle, int* state, const InfoOutputs& outputs) {
  const Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (!state) return kInvalidValue;
  Captures& captures = Captures::get();
  Guard guard(captures.lock);
  if (captures.find_implicitly_blocking(*stream)) return kCaptureImplicit;
  Capture* capture = captures.of(*stream);
  *state = capture ? capture->state() : kNotCapturing;
  if (*state != kCapturing) return kSuccess;
  Nodes& dependencies = capture->streams[stream];
  if (outputs.id) *outputs.id = capture->id;
  if (outputs.graph) *outputs.graph = capture->graph;
  if (outputs.after) *outputs.after = const_cast<const Node**>(dependencies.data());
  if (outputs.count) *outputs.count = dependencies.size();
  return kSuccess;
}

int set_dependencies(void* handle, Node* const* nodes, size_t count, unsigned flags) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (flags > 1) return kInvalidValue;
  return with_capture(*stream,
                      [&](Capture& capture) {
                        if (!capture.graph->contains(nodes, count)) return kInvalidValue;
                        Nodes& dependencies = capture.streams[stream];
                        if (flags) dependencies.clear();  // CU_STREAM_SET_CAPTURE_DEPENDENCIES
                        return add_missing(dependencies, Nodes(nodes, nodes + count)), kSuccess;
                      })
      .value_or(kIllegalState);
}

}  // namespace

API int cuStreamIsCapturing(void* stream, int* state) { return write_info(stream, state, {}); }
API int cuStreamGetCaptureInfo(void* stream, int* state, uint64_t* id) { return write_info(stream, state, {id}); }
API int cuStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, size_t* count) {
  return write_info(stream, state, {id, graph, after, count});
}
API int cuStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, const void** edges,
                                  size_t* count) {
  if (edges) *edges = nullptr;
  return write_info(stream, state, {id, graph, after, count});
}
API int cuStreamBeginCapture_v2(void* stream, int mode) {
  Graph* graph = Handles<Graph>::all().add(std::make_unique<Graph>());
  const int result = begin_capture(stream, graph, true, {}, mode);
  if (result) Handles<Graph>::all().remove(graph);
  return result;
}
API int cuStreamBeginCaptureToGraph(void* stream, void* handle, Node* const* after, const void*, size_t count, int mode) {
  Graph* graph = find_alive<Graph>(handle);
  if (!graph || !graph->contains(after, count)) return kInvalidValue;
  return begin_capture(stream, graph, false, Nodes(after, after + count), mode);
}
API int cuStreamEndCapture(void* stream, void** graph) { return end_capture(stream, graph); }
API int cuStreamUpdateCaptureDependencies(void* stream, Node* const* after, size_t count, unsigned flags) {
  return set_dependencies(stream, after, count, flags);
}
API int cuStreamUpdateCaptureDependencies_v2(void* stream, Node* const* after, const void*, size_t count, unsigned flags) {
  return set_dependencies(stream, after, count, flags);
}
API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (!mode || *mode < kGlobal || *mode > kRelaxed) return kInvalidValue;
  const Mode previous = thread_mode;
  thread_mode = static_cast<Mode>(*mode);
  return *mode = previous, kSuccess;
}
API int cuStreamGetDevice(void* stream, int* device) { return stream_of(stream) ? write_output(device, 0) : kInvalidHandle; }
API int cuStreamGetCtx_v2(void* stream, void** current, void** green) {
  if (!stream_of(stream)) return kInvalidHandle;
  return write_output(current, context()) || write_output(green, nullptr) ? kInvalidValue : kSuccess;
}
API int cuStreamCopyAttributes(void* to, void* from) { return stream_of(to) && stream_of(from) ? kSuccess : kInvalidHandle; }
API int cuStreamSetAttribute(void* stream, int, const void*) { return stream_of(stream) ? kSuccess : kInvalidHandle; }
API int cuStreamGetAttribute(void* stream, int id, LaunchAttribute::Value* value) {
  const Stream* target = stream_of(stream);
  if (!target || !value) return target ? kInvalidValue : kInvalidHandle;
  *value = {};
  if (id == kPriorityAttribute) (*value)[0] = static_cast<unsigned>(target->priority);
  return kSuccess;
}
API int cuStreamGetId(void* stream, uint64_t* id) {
  const Stream* target = stream_of(stream);
  return target ? write_output(id, target->number) : kInvalidHandle;
}

API int cudaStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, size_t* count) {
  return cuStreamGetCaptureInfo_v2(stream, state, id, graph, after, count);
}
API int cudaStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t* id, void** graph, const Node*** after,
                                    const void** edges, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, state, id, graph, after, edges, count);
}
API int cudaThreadExchangeStreamCaptureMode(int* mode) { return cuThreadExchangeStreamCaptureMode(mode); }

PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz);
PER_THREAD(cuStreamBeginCapture_v2, _ptsz);
PER_THREAD(cuStreamCopyAttributes, _ptsz);
PER_THREAD(cuStreamEndCapture, _ptsz);
PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz);
PER_THREAD(cuStreamGetCtx_v2, _ptsz);
PER_THREAD(cuStreamGetDevice, _ptsz);
PER_THREAD(cuStreamGetId, _ptsz);
PER_THREAD(cuStreamIsCapturing, _ptsz);
PER_THREAD(cuStreamSetAttribute, _ptsz);
PER_THREAD(cuStreamUpdateCaptureDependencies_v2, _ptsz);
PER_THREAD(cuStreamGetCaptureInfo, _ptsz);
PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz);
PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz);
PER_THREAD(cuStreamGetAttribute, _ptsz);
PER_THREAD(cudaStreamGetCaptureInfo_v2, _ptsz);
PER_THREAD(cudaStreamGetCaptureInfo_v3, _ptsz);
