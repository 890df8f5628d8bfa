// Captures under way, and what else streams are asked.
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
  std::map<const Stream*, Nodes> streams{};  // that are captured, each with what its next node comes after
  std::map<uint32_t, Nodes> events{};        // recorded in it, by their numbers, likewise

  State state() const { return invalid ? kInvalidated : kCapturing; }
  bool is_of_this_thread() const { return thread == std::this_thread::get_id(); }
  bool is_blocking() const {
    return std::any_of(streams.begin(), streams.end(), [](const auto& one) { return one.first->blocking(); });
  }
  CudaResult invalidate(CudaResult why) { return invalid = true, why; }
  // Does each stream lead to the last node of the origin?
  bool is_joined() const {
    std::set<const Node*> reached;
    Nodes open = streams.at(origin);
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (reached.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
    }
    for (const auto& [stream, last] : streams)
      for (const Node* node : last)
        if (!reached.count(node)) return false;
    return true;
  }
};

void add_to(Nodes& all, const Nodes& more) {
  for (Node* node : more)
    if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
}

class Captures {
 public:
  static Captures& get() {
    static Captures* one = new Captures;
    return *one;
  }

  std::mutex lock;
  bool any() const { return count_; }
  Capture* of(const Stream& stream) {
    return find([&](const Capture& one) { return one.streams.count(&stream) != 0; });
  }
  Capture* of(const Event& event) {
    return find([&](const Capture& one) { return one.events.count(event.number) != 0; });
  }
  const std::vector<std::unique_ptr<Capture>>& all() const { return active_; }
  void begin(std::unique_ptr<Capture> capture) { active_.push_back(std::move(capture)), count_ = active_.size(); }
  void end(const Capture* capture) {
    active_.erase(std::find_if(active_.begin(), active_.end(), [=](const auto& one) { return one.get() == capture; }));
    count_ = active_.size();
  }
  // The legacy default stream would wait for captured streams that block.
  Capture* that_blocks(const Stream& stream) {
    if (&stream != stream_of(nullptr)) return nullptr;
    return find([](const Capture& one) { return !one.invalid && one.is_blocking(); });
  }

 private:
  template <class F> Capture* find(F f) {
    for (const auto& one : active_)
      if (f(*one)) return one.get();
    return nullptr;
  }
  std::vector<std::unique_ptr<Capture>> active_;
  std::atomic<size_t> count_{0};
};

thread_local Mode thread_mode = kGlobal;

using Hold = std::lock_guard<std::mutex>;

// f(capture), under the lock, where the stream is captured or would depend on what is.
template <class F> std::optional<int> with_capture(const Stream& stream, F f) {
  Captures& captures = Captures::get();
  if (!captures.any()) return std::nullopt;
  Hold hold(captures.lock);
  if (Capture* one = captures.that_blocks(stream)) return one->invalidate(kCaptureImplicit);
  Capture* one = captures.of(stream);
  if (!one) return std::nullopt;
  return one->invalid ? kCaptureInvalidated : f(*one);
}

}  // namespace

namespace vgpu {

bool is_anything_captured() { return Captures::get().any(); }

std::optional<int> add_node(Stream& on, const std::function<CudaResult(Step&)>& make) {
  return with_capture(on, [&](Capture& capture) {
    Step step;
    if (CudaResult wrong = make(step)) return wrong;
    Nodes& last = capture.streams[&on];
    last = {capture.graph->add(std::move(step), last)};
    return kSuccess;
  });
}

std::optional<int> capture_record(const Event& event, Stream& on) {
  std::optional<int> taken = with_capture(on, [&](Capture& capture) {
    capture.events[event.number] = capture.streams[&on];
    return kSuccess;
  });
  if (!taken && is_anything_captured()) {  // it is another point in time from now on
    Hold hold(Captures::get().lock);
    for (const auto& one : Captures::get().all()) one->events.erase(event.number);
  }
  return taken;
}

std::optional<int> capture_wait(Stream& waits, const Event& on) {
  Captures& captures = Captures::get();
  if (!captures.any()) return std::nullopt;
  Hold hold(captures.lock);
  if (Capture* blocking = captures.that_blocks(waits)) return blocking->invalidate(kCaptureImplicit);
  Capture *from = captures.of(on), *into = captures.of(waits);
  if (!from && !into) return std::nullopt;
  if ((from && from->invalid) || (into && into->invalid)) return kCaptureInvalidated;
  if (!from) return on.recorded ? into->invalidate(kCaptureIsolation) : kSuccess;
  if (into && into != from) return from->invalidate(kCaptureMerge), into->invalidate(kCaptureMerge);
  if (&waits == stream_of(nullptr)) return from->invalidate(kCaptureUnsupported);
  add_to(from->streams[&waits], from->events[on.number]);
  return kSuccess;
}

CudaResult refuse_if_captured(const Stream& of) {
  return static_cast<CudaResult>(
      with_capture(of, [](Capture& capture) { return capture.invalidate(kCaptureUnsupported); }).value_or(kSuccess));
}

CudaResult refuse_if_captured(const Event& of) {
  if (!is_anything_captured()) return kSuccess;
  {
    Hold hold(Captures::get().lock);
    if (Capture* capture = Captures::get().of(of)) return capture->invalidate(kCapturedEvent);
  }
  return refuse_while_capturing();
}

// Whom it concerns: cuThreadExchangeStreamCaptureMode.
CudaResult refuse_while_capturing() {
  if (!is_anything_captured() || thread_mode == kRelaxed) return kSuccess;
  CudaResult found = kSuccess;
  Hold hold(Captures::get().lock);
  for (const auto& one : Captures::get().all()) {
    const bool own = one->is_of_this_thread() && one->mode != kRelaxed;
    if (own || (thread_mode == kGlobal && one->mode == kGlobal)) found = one->invalidate(kCaptureUnsupported);
  }
  return found;
}

CudaResult refuse_legacy() {
  if (CudaResult refused = refuse_if_captured(*stream_of(nullptr))) return refused;
  return refuse_while_capturing();
}

void forget_captures_of(const Stream& gone) {
  Captures& captures = Captures::get();
  if (!captures.any()) return;
  Hold hold(captures.lock);
  Capture* capture = captures.of(gone);
  if (!capture) return;
  capture->invalid = true;
  capture->streams.erase(&gone);
  if (capture->origin == &gone) captures.end(capture);
}

}  // namespace vgpu

namespace {

int begin(void* handle, Graph* graph, bool owns_graph, Nodes after, int mode) {
  static std::atomic<uint64_t> last_id{0};
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (mode < kGlobal || mode > kRelaxed) return kInvalidValue;
  if (stream == stream_of(nullptr)) return kCaptureUnsupported;
  Captures& captures = Captures::get();
  Hold hold(captures.lock);
  if (captures.of(*stream)) return kIllegalState;
  auto made = std::make_unique<Capture>(Capture{++last_id, graph, owns_graph, stream, static_cast<Mode>(mode)});
  made->streams[stream] = std::move(after);
  return captures.begin(std::move(made)), kSuccess;
}

int end(void* handle, void** graph) {
  if (!graph) return kInvalidValue;
  *graph = nullptr;
  const Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  Captures& captures = Captures::get();
  Hold hold(captures.lock);
  const Capture* capture = captures.of(*stream);
  if (!capture) return kIllegalState;
  if (capture->origin != stream) return kCaptureUnmatched;
  if (capture->mode != kRelaxed && !capture->is_of_this_thread()) return kCaptureWrongThread;
  const CudaResult result = capture->invalid ? kCaptureInvalidated : capture->is_joined() ? kSuccess : kCaptureUnjoined;
  if (result == kSuccess) *graph = capture->graph;
  else if (capture->owns_graph) Handles<Graph>::all().take(capture->graph);
  return captures.end(capture), result;
}

// What is not wanted has no place.
struct Info {
  uint64_t* id = nullptr;
  void** graph = nullptr;
  const Node*** after = nullptr;
  size_t* count = nullptr;
};
int tell(void* handle, int* state, const Info& more) {
  const Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (!state) return kInvalidValue;
  Captures& captures = Captures::get();
  Hold hold(captures.lock);
  if (captures.that_blocks(*stream)) return kCaptureImplicit;
  Capture* capture = captures.of(*stream);
  *state = capture ? capture->state() : kNotCapturing;
  if (*state != kCapturing) return kSuccess;
  Nodes& after = capture->streams[stream];
  if (more.id) *more.id = capture->id;
  if (more.graph) *more.graph = capture->graph;
  if (more.after) *more.after = const_cast<const Node**>(after.data());
  if (more.count) *more.count = after.size();
  return kSuccess;
}

int set_dependencies(void* handle, Node* const* nodes, size_t count, unsigned flags) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (flags > 1) return kInvalidValue;
  return with_capture(*stream,
                      [&](Capture& capture) {
                        if (!capture.graph->holds(nodes, count)) return kInvalidValue;
                        Nodes& after = capture.streams[stream];
                        if (flags) after.clear();  // CU_STREAM_SET_CAPTURE_DEPENDENCIES
                        return add_to(after, Nodes(nodes, nodes + count)), kSuccess;
                      })
      .value_or(kIllegalState);
}

}  // namespace

API int cuStreamIsCapturing(void* stream, int* state) { return tell(stream, state, {}); }
API int cuStreamGetCaptureInfo(void* stream, int* state, uint64_t* id) { return tell(stream, state, {id}); }
API int cuStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, size_t* count) {
  return tell(stream, state, {id, graph, after, count});
}
API int cuStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, const void** edges,
                                  size_t* count) {
  if (edges) *edges = nullptr;
  return tell(stream, state, {id, graph, after, count});
}
API int cuStreamBeginCapture_v2(void* stream, int mode) {
  Graph* graph = Handles<Graph>::all().add(std::make_unique<Graph>());
  const int result = begin(stream, graph, true, {}, mode);
  if (result) Handles<Graph>::all().take(graph);
  return result;
}
API int cuStreamBeginCaptureToGraph(void* stream, void* handle, Node* const* after, const void*, size_t count, int mode) {
  Graph* graph = alive<Graph>(handle);
  if (!graph || !graph->holds(after, count)) return kInvalidValue;
  return begin(stream, graph, false, Nodes(after, after + count), mode);
}
API int cuStreamEndCapture(void* stream, void** graph) { return end(stream, graph); }
API int cuStreamUpdateCaptureDependencies(void* stream, Node* const* after, size_t count, unsigned flags) {
  return set_dependencies(stream, after, count, flags);
}
API int cuStreamUpdateCaptureDependencies_v2(void* stream, Node* const* after, const void*, size_t count, unsigned flags) {
  return set_dependencies(stream, after, count, flags);
}
API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (!mode || *mode < kGlobal || *mode > kRelaxed) return kInvalidValue;
  const Mode before = thread_mode;
  thread_mode = static_cast<Mode>(*mode);
  return *mode = before, kSuccess;
}
API int cuStreamGetDevice(void* stream, int* device) { return stream_of(stream) ? give(device, 0) : kInvalidHandle; }
API int cuStreamGetCtx_v2(void* stream, void** found, void** green) {
  if (!stream_of(stream)) return kInvalidHandle;
  return give(found, context()) || give(green, nullptr) ? kInvalidValue : kSuccess;
}
API int cuStreamCopyAttributes(void* to, void* from) { return stream_of(to) && stream_of(from) ? kSuccess : kInvalidHandle; }
API int cuStreamSetAttribute(void* stream, int, const void*) { return stream_of(stream) ? kSuccess : kInvalidHandle; }
API int cuStreamGetId(void* stream, uint64_t* id) { return stream_of(stream) ? give(id, address(stream)) : kInvalidHandle; }

API int cudaStreamGetCaptureInfo(void* stream, int* state, uint64_t* id) { return cuStreamGetCaptureInfo(stream, state, id); }
API int cudaStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t* id, void** graph, const Node*** after, size_t* count) {
  return cuStreamGetCaptureInfo_v2(stream, state, id, graph, after, count);
}
API int cudaStreamGetCaptureInfo_v3(void* stream, int* state, uint64_t* id, void** graph, const Node*** after,
                                    const void** edges, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, state, id, graph, after, edges, count);
}
API int cudaThreadExchangeStreamCaptureMode(int* mode) { return cuThreadExchangeStreamCaptureMode(mode); }
