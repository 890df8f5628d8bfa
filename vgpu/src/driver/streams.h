// Streams and events.  Work executes immediately in the caller's thread, unless it must wait for work that is not complete, such as
// a host function, which runs in a thread of its own.  Then it is deferred to that thread, which executes deferred work in the
// order of the calls, so that all that a stream or an event waits for is executed before it.
#pragma once
#include <atomic>
#include <functional>

#include "device.h"

namespace vgpu {

using Work = std::function<int()>;  // returns a CUDA result

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

uint32_t next_order_number();  // of streams and events together, from 1 on; the legacy default stream has 0
struct Stream {
  ~Stream();
  const void* owner = nullptr;  // the context with which it is destroyed
  unsigned flags = 0;
  int priority = 0;
  uint32_t number = next_order_number();
  std::atomic<uint64_t> last{0};  // number of its last deferred work; 0: none
  bool is_blocking() const { return !(flags & kNonBlocking); }  // whether it is ordered with the legacy default stream
};
struct Event {
  const void* owner = nullptr;
  unsigned flags = 0;
  std::atomic<bool> recorded{false};
  const uint32_t number = next_order_number();
  std::atomic<uint64_t> after{0};  // number of the deferred work that it waits for; 0: none
  bool is_timed() const { return !(flags & 2); }  // CU_EVENT_DISABLE_TIMING
};

Stream& legacy_stream();
Stream& default_stream();  // of the current call: the legacy one, or in a PerThreadScope that of this thread
Stream* stream_of(void* handle);  // nullptr: the handle is invalid.  A null handle is the default stream

// cuStreamQuery and cuEventQuery.  caller: an address in the code that calls.
int query_stream(void* stream, const void* caller);
int query_event(void* event, const void* caller);
// Returns kSuccess if all work of the stream is complete, kNotReady, or the sticky error.
CudaResult state_of(const Stream& stream);
// Waits, but the check of order does not count it as a wait of the host.
CudaResult wait_without_ordering(const Stream& stream);
CudaResult wait_for(const Stream& stream);
CudaResult wait_for_all();
CudaResult defer(Stream& stream, Work work);

void record(Event& event, const Stream& stream);
void wait(Stream& stream, const Event& event);

// Tells the check that proves schedule-independence (VGPU_CHECK=order) of an operation of the stream, and returns the number
// that it has there; 0 without that check.  Nothing is enqueued.
uint32_t number_operation(const Stream& stream);

// Executes work in order of a stream; returns its result, or kSuccess if it was deferred.
template <class F> int in_order(void* handle, F work) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return state_of(*stream) == kNotReady ? defer(*stream, Work(std::move(work))) : work();
}

}  // namespace vgpu
