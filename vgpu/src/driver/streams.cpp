// Streams, events, host functions, and the thread for deferred work: host functions, and what waits for them.  on_host_source()
// tells VGPU_CHECK=order that the program's decisions may depend on a host function, or on the time of an event.
#include "streams.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

#include "analysis/order/stream_order.h"
#include "api.h"
#include "capture.h"
#include "framework_code.h"
#include "handles.h"

using namespace vgpu;

namespace {

// The queue and the thread of deferred work.  Never destroyed: host functions may run while libraries are unloaded.
class Deferred {
 public:
  static Deferred& get() {
    static Deferred* deferred = new Deferred;
    return *deferred;
  }

  bool is_done(uint64_t number) const { return number <= completed_; }
  uint64_t issued() const { return issued_; }
  uint64_t add(Work work) {
    std::lock_guard<std::mutex> guard(lock_);
    queue_.push_back(std::move(work));
    work_added_.notify_one();
    return ++issued_;
  }
  void wait(uint64_t number) {
    if (is_done(number)) return;
    std::unique_lock<std::mutex> guard(lock_);
    finished_.wait(guard, [=] { return is_done(number); });
  }

 private:
  Deferred() : worker_([this] { run(); }) {}
  void run() {
    std::unique_lock<std::mutex> guard(lock_);
    for (;;) {
      work_added_.wait(guard, [this] { return !queue_.empty(); });
      Work work = std::move(queue_.front());
      queue_.pop_front();
      guard.unlock();
      work();
      work = nullptr;
      guard.lock();
      completed_++;
      finished_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable work_added_, finished_;
  std::deque<Work> queue_;
  std::atomic<uint64_t> issued_{0}, completed_{0};
  std::thread worker_;  // the last member, as it uses those before
};

// Most programs never defer work; then the queue and its thread are not created.
std::atomic<bool> any_deferred{false};
bool is_done(uint64_t number) { return !any_deferred || Deferred::get().is_done(number); }

thread_local bool uses_per_thread_stream = false;
Stream& per_thread_stream() {
  thread_local auto* stream = new Stream;  // never destroyed: deferred work and captures may refer to it
  return *stream;
}

void raise_to(std::atomic<uint64_t>& number, uint64_t minimum) {
  uint64_t current = number;
  while (current < minimum && !number.compare_exchange_weak(current, minimum)) {}
}

// Returns the number of the last deferred work that new work of the stream waits for.  The legacy default stream and all blocking
// streams wait for each other; `blocking_last` is the last work of blocking streams.
std::atomic<uint64_t> blocking_last{0};
uint64_t last_awaited_work(const Stream& stream) {
  if (&stream == &legacy_stream()) return std::max<uint64_t>(stream.last, blocking_last);
  return stream.is_blocking() ? std::max<uint64_t>(stream.last, legacy_stream().last) : stream.last.load();
}
void order_after(Stream& stream, uint64_t number) {
  raise_to(stream.last, number);
  if (stream.is_blocking()) raise_to(blocking_last, number);
}

thread_local bool in_host_function_ = false;
// Calls a function of the program.
template <class F> int call_host(F f) {
  in_host_function_ = true;
  f();
  return in_host_function_ = false, kSuccess;
}

CudaResult wait_until(uint64_t number) {
  if (in_host_function_) return kNotPermitted;
  if (!is_done(number)) Deferred::get().wait(number);
  return Device::get().sticky_error();
}
CudaResult state_at(uint64_t number) { return is_done(number) ? Device::get().sticky_error() : kNotReady; }

// Calls f(StreamOrder), if VGPU_CHECK=order is set.
template <class F> void notify_order(F f) {
  if (StreamOrder* order = Device::get().stream_order()) f(*order);
}
void notify_host_wait(const Stream& stream) {
  notify_order([&](StreamOrder& order) { order.on_host_wait(stream.number, stream.is_blocking()); });
}
void notify_host_wait(const Event& event) {
  notify_order([&](StreamOrder& order) { order.on_host_wait_event(event.number); });
}
bool is_before_host(StreamOrder& order, const Stream& stream) {
  return order.is_before_host(stream.number, stream.is_blocking());
}
bool is_before_host(StreamOrder& order, const Event& event) { return order.is_before_host(event.number); }
// Counts a query that reports completion as a wait of the host.  What the caller does may depend on the answer, unless every
// schedule gives the same one.
template <class T> CudaResult notify_query(const T& object, CudaResult state, const void* caller) {
  notify_order([&](StreamOrder& order) {
    if (!is_before_host(order, object) && !is_framework_code(caller)) Device::get().on_host_source("query");
    if (state == kSuccess) notify_host_wait(object);
  });
  return state;
}

int make_stream(void** stream, unsigned flags, int priority) {
  if (!stream || flags > 1) return kInvalidValue;
  if (CudaResult error = Device::get().sticky_error()) return error;
  auto created = std::make_unique<Stream>();
  created->owner = owning_context(), created->flags = flags, created->priority = std::clamp(priority, -1, 0);
  return *stream = Handles<Stream>::all().add(std::move(created)), kSuccess;
}
constexpr unsigned kExternal = 1;  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL: a node of a capture
template <class F> int with_stream(void* handle, F f) {
  if (in_host_function_) return kNotPermitted;
  Stream* stream = stream_of(handle);
  return stream ? static_cast<int>(f(*stream)) : kInvalidHandle;
}
template <class F> int with_event(void* handle, F f) {
  if (in_host_function_) return kNotPermitted;
  Event* event = find_alive<Event>(handle);
  return event ? static_cast<int>(f(*event)) : kInvalidHandle;
}

}  // namespace

namespace vgpu {

// Returns a unique handle for an object of a vendor library.
void* dummy_handle() {
  static std::atomic<uint64_t> last{0x1000};
  return pointer(last += 64);
}

bool in_host_function() { return in_host_function_; }

uint32_t next_order_number() {
  static std::atomic<uint32_t> last{StreamOrder::kLegacy};
  return ++last;
}

uint32_t number_operation(const Stream& stream) {
  StreamOrder* order = Device::get().stream_order();
  return order ? order->add(stream.number, stream.is_blocking()) : 0;  // 0: VGPU_CHECK=order is not set
}

void destroy_streams_of(const void* context) {
  Handles<Stream>::all().erase_where([=](const Stream& object) { return object.owner == context; });
  Handles<Event>::all().erase_where([=](const Event& object) { return object.owner == context; });
}

Stream::~Stream() { forget_captures_of(*this); }

void record(Event& event, const Stream& stream) {
  notify_order([&](StreamOrder& order) { order.record(event.number, stream.number, stream.is_blocking()); });
  event.after = last_awaited_work(stream), event.recorded = true;
}
void wait(Stream& stream, const Event& event) {
  notify_order([&](StreamOrder& order) { order.wait(stream.number, event.number); });
  order_after(stream, event.after);
}

PerThreadScope::PerThreadScope() : outer_(uses_per_thread_stream) { uses_per_thread_stream = true; }
PerThreadScope::~PerThreadScope() { uses_per_thread_stream = outer_; }

Stream& legacy_stream() {
  static Stream* stream = [] {
    auto* created = new Stream;
    return created->number = StreamOrder::kLegacy, created;
  }();
  return *stream;
}
Stream& default_stream() { return uses_per_thread_stream ? per_thread_stream() : legacy_stream(); }
Stream* stream_of(void* handle) {
  switch (address(handle)) {
    case 0: return &default_stream();
    case 1: return &legacy_stream();  // CU_STREAM_LEGACY
    case 2: return &per_thread_stream();  // CU_STREAM_PER_THREAD
    default: return find_alive<Stream>(handle);
  }
}
int query_stream(void* stream, const void* caller) {
  return with_stream(stream, [=](Stream& target) {
    if (CudaResult error = refuse_if_captured(target)) return error;
    return notify_query(target, state_of(target), caller);
  });
}
int query_event(void* event, const void* caller) {
  return with_event(event, [=](Event& target) {
    if (CudaResult error = refuse_if_captured(target)) return error;
    return notify_query(target, state_at(target.after), caller);
  });
}
CudaResult state_of(const Stream& stream) { return state_at(last_awaited_work(stream)); }
CudaResult wait_without_ordering(const Stream& stream) { return wait_until(last_awaited_work(stream)); }
CudaResult wait_for(const Stream& stream) {
  notify_host_wait(stream);
  return wait_until(last_awaited_work(stream));
}
CudaResult wait_for_all() {
  notify_order([](StreamOrder& order) { order.on_host_wait_all(); });
  return wait_until(any_deferred ? Deferred::get().issued() : 0);
}
CudaResult defer(Stream& stream, Work work) {
  any_deferred = true;
  return order_after(stream, Deferred::get().add(std::move(work))), kSuccess;
}

}  // namespace vgpu

API int cuStreamCreate(void** stream, unsigned flags) { return make_stream(stream, flags, 0); }
API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) { return make_stream(stream, flags, priority); }
API int cuStreamDestroy_v2(void* stream) {
  if (in_host_function()) return kNotPermitted;
  return Handles<Stream>::all().remove(stream) ? kSuccess : kInvalidHandle;
}
API int cuStreamSynchronize(void* stream) {
  return with_stream(stream, [](Stream& target) {
    if (CudaResult error = refuse_if_captured(target)) return error;
    return wait_for(target);
  });
}
API int cuStreamQuery(void* stream) { return query_stream(stream, __builtin_return_address(0)); }
API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return with_stream(stream, [=](Stream& waiting_stream) {
    return with_event(event, [&](Event& awaited_event) -> int {
      auto capture_result =
          flags & kExternal
              ? capture(waiting_stream, [=](void* graph_stream) { return cuStreamWaitEvent(graph_stream, event, 0); })
              : capture_wait(waiting_stream, awaited_event);
      return capture_result ? *capture_result : (wait(waiting_stream, awaited_event), kSuccess);
    });
  });
}
API int cuStreamGetCtx(void* stream, void** current) {
  return with_stream(stream, [=](Stream&) { return write_output(current, context()); });
}
API int cuStreamGetPriority(void* stream, int* priority) {
  return with_stream(stream, [=](Stream& target) { return write_output(priority, target.priority); });
}
API int cuStreamGetFlags(void* stream, unsigned* flags) {
  return with_stream(stream, [=](Stream& target) { return write_output(flags, target.flags); });
}
API int cuStreamAddCallback(void* stream, void (*f)(void*, int, void*), void* data, unsigned flags) {
  if (!f || flags) return kInvalidValue;
  return with_stream(stream, [=](Stream& target) {
    if (CudaResult error = refuse_if_captured(target)) return error;
    Device::get().on_host_source("host_function");
    return defer(target, [=] {
      const int fault = Device::get().sticky_error();
      return call_host([=] { f(stream, fault, data); });
    });
  });
}
API int cuLaunchHostFunc(void* stream, void (*f)(void*), void* data) {
  if (!f) return kInvalidValue;
  return with_stream(stream, [=](Stream& target) -> int {  // not called after a fault of the device
    if (auto capture_result = capture(target, [=](void* graph_stream) { return cuLaunchHostFunc(graph_stream, f, data); }))
      return *capture_result;
    Device::get().on_host_source("host_function");
    return defer(target,
                 [=] { return Device::get().sticky_error() ? Device::get().sticky_error() : call_host([=] { f(data); }); });
  });
}

API int cuEventCreate(void** event, unsigned flags) {
  if (!event || flags > 7) return kInvalidValue;
  if (CudaResult error = Device::get().sticky_error()) return error;
  auto created = std::make_unique<Event>();
  created->owner = owning_context(), created->flags = flags;
  return *event = Handles<Event>::all().add(std::move(created)), kSuccess;
}
API int cuEventDestroy_v2(void* event) { return Handles<Event>::all().remove(event) ? kSuccess : kInvalidHandle; }
API int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return with_event(event, [=](Event& recorded_event) {
    return with_stream(stream, [&](Stream& recording_stream) -> int {
      auto capture_result =
          flags & kExternal ? capture(recording_stream, [=](void* graph_stream) { return cuEventRecord(event, graph_stream); })
                            : capture_record(recorded_event, recording_stream);
      return capture_result ? *capture_result : (record(recorded_event, recording_stream), Device::get().sticky_error());
    });
  });
}
API int cuEventRecord(void* event, void* stream) { return cuEventRecordWithFlags(event, stream, 0); }
API int cuEventQuery(void* event) { return query_event(event, __builtin_return_address(0)); }
API int cuEventSynchronize(void* event) {
  return with_event(event, [](Event& target) {
    if (CudaResult error = refuse_if_captured(target)) return error;
    return notify_host_wait(target), wait_until(target.after);
  });
}
API int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  if (!milliseconds) return kInvalidValue;
  const Event *first = find_alive<Event>(start), *last = find_alive<Event>(end);
  for (const Event* bound : {first, last})
    if (!bound || !bound->recorded || !bound->is_timed()) return kInvalidHandle;
  Device& device = Device::get();
  if (CudaResult state = state_at(std::max<uint64_t>(first->after, last->after))) return state;
  device.on_host_source("event_time");
  std::lock_guard<std::mutex> guard(device.lock());
  return write_output(milliseconds, device.event_milliseconds());
}
API int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) { return cuEventElapsedTime(milliseconds, from, to); }

PER_THREAD(cuStreamSynchronize, _ptsz);
PER_THREAD(cuStreamQuery, _ptsz);
PER_THREAD(cuStreamWaitEvent, _ptsz);
PER_THREAD(cuStreamAddCallback, _ptsz);
PER_THREAD(cuLaunchHostFunc, _ptsz);
PER_THREAD(cuEventRecord, _ptsz);
PER_THREAD(cuEventRecordWithFlags, _ptsz);

PER_THREAD(cuStreamGetCtx, _ptsz);
PER_THREAD(cuStreamGetFlags, _ptsz);
PER_THREAD(cuStreamGetPriority, _ptsz);
