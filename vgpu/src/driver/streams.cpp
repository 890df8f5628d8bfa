// Streams, events and host functions: work runs in stream order, at once where nothing blocks it.
#include "streams.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

#include "analysis/order/stream_order.h"
#include "api.h"
#include "capture.h"
#include "handles.h"

using namespace vgpu;

namespace {

// Never destroyed: host functions may still run while libraries are unloaded.
class Deferred {
 public:
  static Deferred& get() {
    static Deferred* one = new Deferred;
    return *one;
  }

  bool done(uint64_t number) const { return number <= completed_; }
  uint64_t issued() const { return issued_; }
  uint64_t add(Work work) {
    std::lock_guard<std::mutex> hold(lock_);
    queue_.push_back(std::move(work));
    more_.notify_one();
    return ++issued_;
  }
  void wait(uint64_t number) {
    if (done(number)) return;
    std::unique_lock<std::mutex> hold(lock_);
    finished_.wait(hold, [=] { return done(number); });
  }

 private:
  Deferred() : worker_([this] { run(); }) {}
  void run() {
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      more_.wait(hold, [this] { return !queue_.empty(); });
      Work work = std::move(queue_.front());
      queue_.pop_front();
      hold.unlock();
      work();
      work = nullptr;
      hold.lock();
      completed_++;
      finished_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable more_, finished_;
  std::deque<Work> queue_;
  std::atomic<uint64_t> issued_{0}, completed_{0};
  std::thread worker_;  // the last: it uses what stands before
};

// No work was ever deferred in most programs: then nothing is asked for.
std::atomic<bool> any_deferred{false};
bool done(uint64_t number) { return !any_deferred || Deferred::get().done(number); }

Stream& legacy() {
  static Stream* one = [] {
    auto* made = new Stream;
    return made->number = StreamOrder::kLegacy, made;
  }();
  return *one;
}
Stream& per_thread() {
  static Stream* one = new Stream;
  return *one;
}

void raise(std::atomic<uint64_t>& number, uint64_t to) {
  uint64_t now = number;
  while (now < to && !number.compare_exchange_weak(now, to)) {}
}

// What work that is asked of the stream now comes after.  The legacy default stream waits for all blocking ones, and they
// for it; their last work is kept in `blocking_last`.
std::atomic<uint64_t> blocking_last{0};
uint64_t before(const Stream& stream) {
  if (&stream == &legacy()) return std::max<uint64_t>(stream.last, blocking_last);
  return stream.blocking() ? std::max<uint64_t>(stream.last, legacy().last) : stream.last.load();
}
void comes_after(Stream& stream, uint64_t number) {
  raise(stream.last, number);
  if (stream.blocking()) raise(blocking_last, number);
}

thread_local bool in_host_function_ = false;
// f(), which is the program's.
template <class F> int call_host(F f) {
  in_host_function_ = true;
  f();
  return in_host_function_ = false, kSuccess;
}

CudaResult wait_until(uint64_t number) {
  if (in_host_function_) return kNotPermitted;
  if (!done(number)) Deferred::get().wait(number);
  return Device::get().sticky_error();
}
CudaResult state_at(uint64_t number) { return done(number) ? Device::get().sticky_error() : kNotReady; }

// Tells who keeps the order of operations (VGPU_CHECK=order), if anybody does.
template <class F> void tell_order(F f) {
  if (StreamOrder* order = Device::get().stream_order()) f(*order);
}
void tell_host_wait(const Stream& stream) {
  tell_order([&](StreamOrder& order) { order.on_host_wait(stream.number, stream.blocking()); });
}
void tell_host_wait(const Event& event) {
  tell_order([&](StreamOrder& order) { order.on_host_wait_event(event.number); });
}
// A query after which the host may go on.
template <class T> CudaResult tell_if_done(const T& what, CudaResult state) {
  if (state == kSuccess) tell_host_wait(what);
  return state;
}

int make_stream(void** stream, unsigned flags, int priority) {
  if (!stream || flags > 1) return kInvalidValue;
  if (CudaResult broken = Device::get().sticky_error()) return broken;
  auto made = std::make_unique<Stream>();
  made->owner = owning_context(), made->flags = flags, made->priority = std::clamp(priority, -1, 0);
  return *stream = Handles<Stream>::all().add(std::move(made)), kSuccess;
}
constexpr unsigned kExternal = 1;  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL: a node of a capture
template <class F> int with_stream(void* handle, F f) {
  if (in_host_function_) return kNotPermitted;
  Stream* stream = stream_of(handle);
  return stream ? static_cast<int>(f(*stream)) : kInvalidHandle;
}
template <class F> int with_event(void* handle, F f) {
  if (in_host_function_) return kNotPermitted;
  Event* event = alive<Event>(handle);
  return event ? static_cast<int>(f(*event)) : kInvalidHandle;
}

}  // namespace

namespace vgpu {

void* dummy_handle() {
  static std::atomic<uint64_t> last{0x1000};
  return pointer(last += 64);
}

bool in_host_function() { return in_host_function_; }

uint32_t next_stream_number() {
  static std::atomic<uint32_t> last{StreamOrder::kLegacy};
  return ++last;
}

uint32_t add_operation(const Stream& stream) {
  StreamOrder* order = Device::get().stream_order();
  return order ? order->add(stream.number, stream.blocking()) : 0;
}

void destroy_streams_of(const void* context) {
  Handles<Stream>::all().take_where([=](const Stream& one) { return one.owner == context; });
  Handles<Event>::all().take_where([=](const Event& one) { return one.owner == context; });
}

Stream::~Stream() { forget_captures_of(*this); }

void record(Event& event, const Stream& on) {
  tell_order([&](StreamOrder& order) { order.record(event.number, on.number, on.blocking()); });
  event.after = before(on), event.recorded = true;
}
void wait(Stream& waits, const Event& on) {
  tell_order([&](StreamOrder& order) { order.wait(waits.number, on.number); });
  comes_after(waits, on.after);
}

Stream* stream_of(void* handle) {
  if (address(handle) <= 1) return &legacy();  // CU_STREAM_LEGACY
  return address(handle) == 2 ? &per_thread() : alive<Stream>(handle);  // CU_STREAM_PER_THREAD
}
CudaResult state_of(const Stream& stream) { return state_at(before(stream)); }
CudaResult come_after(const Stream& stream) { return wait_until(before(stream)); }
CudaResult wait_for(const Stream& stream) {
  tell_host_wait(stream);
  return wait_until(before(stream));
}
CudaResult wait_for_all() {
  tell_order([](StreamOrder& order) { order.on_host_wait_all(); });
  return wait_until(any_deferred ? Deferred::get().issued() : 0);
}
CudaResult defer(Stream& stream, Work work) {
  any_deferred = true;
  return comes_after(stream, Deferred::get().add(std::move(work))), kSuccess;
}

}  // namespace vgpu

API int cuStreamCreate(void** stream, unsigned flags) { return make_stream(stream, flags, 0); }
API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) { return make_stream(stream, flags, priority); }
API int cuStreamDestroy_v2(void* stream) {
  if (in_host_function()) return kNotPermitted;
  return Handles<Stream>::all().take(stream) ? kSuccess : kInvalidHandle;
}
API int cuStreamSynchronize(void* stream) {
  return with_stream(stream, [](Stream& of) {
    if (CudaResult refused = refuse_if_captured(of)) return refused;
    return wait_for(of);
  });
}
API int cuStreamQuery(void* stream) {
  return with_stream(stream, [](Stream& of) {
    if (CudaResult refused = refuse_if_captured(of)) return refused;
    return tell_if_done(of, state_of(of));
  });
}
API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return with_stream(stream, [=](Stream& waits) {
    return with_event(event, [&](Event& on) -> int {
      auto taken = flags & kExternal ? capture(waits, [=](void* later) { return cuStreamWaitEvent(later, event, 0); })
                                     : capture_wait(waits, on);
      return taken ? *taken : (wait(waits, on), kSuccess);
    });
  });
}
API int cuStreamGetCtx(void* stream, void** found) {
  return with_stream(stream, [=](Stream&) { return give(found, context()); });
}
API int cuStreamGetPriority(void* stream, int* priority) {
  return with_stream(stream, [=](Stream& of) { return give(priority, of.priority); });
}
API int cuStreamGetFlags(void* stream, unsigned* flags) {
  return with_stream(stream, [=](Stream& of) { return give(flags, of.flags); });
}
API int cuStreamAddCallback(void* stream, void (*f)(void*, int, void*), void* data, unsigned flags) {
  if (!f || flags) return kInvalidValue;
  return with_stream(stream, [=](Stream& on) {
    if (CudaResult refused = refuse_if_captured(on)) return refused;
    Device::get().on_host_source("host_function");
    return defer(on, [=] {
      const int fault = Device::get().sticky_error();
      return call_host([=] { f(stream, fault, data); });
    });
  });
}
API int cuLaunchHostFunc(void* stream, void (*f)(void*), void* data) {
  if (!f) return kInvalidValue;
  return with_stream(stream, [=](Stream& on) -> int {  // after a fault of the device none is called
    if (auto taken = capture(on, [=](void* later) { return cuLaunchHostFunc(later, f, data); })) return *taken;
    Device::get().on_host_source("host_function");
    return defer(on, [=] { return Device::get().sticky_error() ? Device::get().sticky_error() : call_host([=] { f(data); }); });
  });
}

API int cuEventCreate(void** event, unsigned flags) {
  if (!event || flags > 7) return kInvalidValue;
  if (CudaResult broken = Device::get().sticky_error()) return broken;
  auto made = std::make_unique<Event>();
  made->owner = owning_context(), made->flags = flags;
  return *event = Handles<Event>::all().add(std::move(made)), kSuccess;
}
API int cuEventDestroy_v2(void* event) { return Handles<Event>::all().take(event) ? kSuccess : kInvalidHandle; }
API int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return with_event(event, [=](Event& what) {
    return with_stream(stream, [&](Stream& on) -> int {
      auto taken =
          flags & kExternal ? capture(on, [=](void* later) { return cuEventRecord(event, later); }) : capture_record(what, on);
      return taken ? *taken : (record(what, on), Device::get().sticky_error());
    });
  });
}
API int cuEventRecord(void* event, void* stream) { return cuEventRecordWithFlags(event, stream, 0); }
API int cuEventQuery(void* event) {
  return with_event(event, [](Event& of) {
    if (CudaResult refused = refuse_if_captured(of)) return refused;
    return tell_if_done(of, state_at(of.after));
  });
}
API int cuEventSynchronize(void* event) {
  return with_event(event, [](Event& of) {
    if (CudaResult refused = refuse_if_captured(of)) return refused;
    return tell_host_wait(of), wait_until(of.after);
  });
}
API int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  if (!milliseconds) return kInvalidValue;
  const Event *first = alive<Event>(from), *last = alive<Event>(to);
  for (const Event* one : {first, last})
    if (!one || !one->recorded || !one->timed()) return kInvalidHandle;
  Device& device = Device::get();
  if (CudaResult state = state_at(std::max<uint64_t>(first->after, last->after))) return state;
  device.on_host_source("event_time");
  std::lock_guard<std::mutex> hold(device.lock());
  return give(milliseconds, device.event_milliseconds());
}
API int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) { return cuEventElapsedTime(milliseconds, from, to); }

PER_THREAD(cuStreamSynchronize, _ptsz);
PER_THREAD(cuStreamQuery, _ptsz);
PER_THREAD(cuStreamWaitEvent, _ptsz);
PER_THREAD(cuStreamAddCallback, _ptsz);
PER_THREAD(cuLaunchHostFunc, _ptsz);
PER_THREAD(cuEventRecord, _ptsz);
PER_THREAD(cuEventRecordWithFlags, _ptsz);
