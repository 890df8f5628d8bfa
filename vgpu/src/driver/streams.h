// Streams: their work is done at once, in the caller's thread, unless it comes after work that is not done yet, such as a
// host function, which runs in a thread of its own.  Then it is deferred to that thread, which does all in the order of the
// calls: so whatever a stream or an event waits for comes before it.
#pragma once
#include <atomic>
#include <functional>

#include "device.h"

namespace vgpu {

using Work = std::function<int()>;  // CUDA's result

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

uint32_t next_stream_number();  // from 1 on
struct Stream {
  ~Stream();
  const void* owner = nullptr;  // the context that it goes with
  unsigned flags = 0;
  int priority = 0;
  uint32_t number = next_stream_number();
  std::atomic<uint64_t> last{0};  // the number of its last deferred work
  bool blocking() const { return !(flags & kNonBlocking); }  // is ordered with the legacy default stream
};
struct Event {
  const void* owner = nullptr;
  unsigned flags = 0;
  std::atomic<bool> recorded{false};
  const uint32_t number = next_stream_number();
  std::atomic<uint64_t> after{0};  // the deferred work that it waits for
  bool timed() const { return !(flags & 2); }  // CU_EVENT_DISABLE_TIMING
};

Stream* stream_of(void* handle);  // nullptr: no stream.  A null handle is the legacy default stream

// Is all done that was asked of the stream?  kSuccess, kNotReady, or the error after which nothing runs.
CudaResult state_of(const Stream& stream);
CudaResult come_after(const Stream& stream);  // waits until it is done, which the host need not
CudaResult wait_for(const Stream& stream);
CudaResult wait_for_all();
CudaResult defer(Stream& stream, Work work);

void record(Event& event, const Stream& on);
void wait(Stream& waits, const Event& on);

// What is asked of the stream now, for VGPU_CHECK=order; 0 where nobody asks.
uint32_t add_operation(const Stream& stream);

// The work's result, or that of deferring it.
template <class F> int in_order(void* handle, F work) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return state_of(*stream) == kNotReady ? defer(*stream, Work(std::move(work))) : work();
}

}  // namespace vgpu
