// Streams and events: names only, for all work is done in the order of the calls, before each returns.
#include <condition_variable>
#include <deque>
#include <thread>

#include "api.h"

using namespace vgpu;

namespace {

// Never destroyed: callbacks may still run while libraries are unloaded.
struct Later {
  std::mutex lock;
  std::condition_variable more;
  std::deque<std::pair<void (*)(void*), void*>> queue;

  Later() {
    std::thread([this] {
      std::unique_lock<std::mutex> hold(lock);
      for (;;) {
        more.wait(hold, [this] { return !queue.empty(); });
        auto [f, data] = queue.front();
        queue.pop_front();
        hold.unlock();
        f(data);
        hold.lock();
      }
    }).detach();
  }
};

struct Callback {
  void (*f)(void*, int, void*);
  void *stream, *data;
};

}  // namespace

namespace vgpu {

void* handle() {
  static std::atomic<uint64_t> last{0x1000};
  return pointer(last += 64);
}

void call_later(void (*f)(void*), void* data) {
  static Later* later = new Later;
  std::lock_guard<std::mutex> hold(later->lock);
  later->queue.emplace_back(f, data);
  later->more.notify_one();
}

}  // namespace vgpu

API int cuStreamCreate(void** stream, unsigned) { return *stream = handle(), kSuccess; }
API int cuStreamCreateWithPriority(void** stream, unsigned, int) { return *stream = handle(), kSuccess; }
API int cuStreamDestroy_v2(void*) { return kSuccess; }
API int cuStreamSynchronize(void*) { return Device::get().sticky(); }
API int cuStreamQuery(void*) { return Device::get().sticky(); }
API int cuStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
API int cuStreamIsCapturing(void*, int* state) { return *state = 0, kSuccess; }
API int cuStreamGetCtx(void*, void** found) { return *found = context(), kSuccess; }
API int cuStreamGetPriority(void*, int* priority) { return *priority = 0, kSuccess; }
API int cuStreamGetFlags(void*, unsigned* flags) { return *flags = 0, kSuccess; }
API int cuStreamAddCallback(void* stream, void (*f)(void*, int, void*), void* data, unsigned) {
  auto run = [](void* what) {
    auto* callback = static_cast<Callback*>(what);
    callback->f(callback->stream, Device::get().sticky(), callback->data);
    delete callback;
  };
  return call_later(run, new Callback{f, stream, data}), kSuccess;
}
API int cuLaunchHostFunc(void*, void (*f)(void*), void* data) { return call_later(f, data), kSuccess; }

API int cuEventCreate(void** event, unsigned) { return *event = handle(), kSuccess; }
API int cuEventDestroy_v2(void*) { return kSuccess; }
API int cuEventRecord(void*, void*) { return kSuccess; }
API int cuEventRecordWithFlags(void*, void*, unsigned) { return kSuccess; }
API int cuEventQuery(void*) { return Device::get().sticky(); }
API int cuEventSynchronize(void*) { return Device::get().sticky(); }
API int cuEventElapsedTime(float* milliseconds, void*, void*) {
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  return *milliseconds = device.event_milliseconds(), kSuccess;
}

PER_THREAD(cuStreamSynchronize, _ptsz);
PER_THREAD(cuStreamQuery, _ptsz);
PER_THREAD(cuStreamWaitEvent, _ptsz);
PER_THREAD(cuStreamAddCallback, _ptsz);
PER_THREAD(cuLaunchHostFunc, _ptsz);
PER_THREAD(cuEventRecord, _ptsz);
