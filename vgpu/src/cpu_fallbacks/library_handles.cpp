// The stream and the pointer mode of each handle of cuBLAS and cuDNN.
#include "library_handles.h"

#include <mutex>
#include <unordered_map>

#include "driver/api.h"

using namespace vgpu;

namespace {

struct HandleState {
  int pointer_mode = 0;
  void* stream = nullptr;
};

std::mutex states_lock;
std::unordered_map<void*, HandleState>& states() {
  static auto* by_handle = new std::unordered_map<void*, HandleState>;
  return *by_handle;
}
// Returns f(state of the handle), which runs with the lock held.
template <class F> auto with_state(void* handle, F f) {
  std::lock_guard<std::mutex> guard(states_lock);
  return f(states()[handle]);
}
int set_stream(void* handle, void* stream) {
  return with_state(handle, [=](HandleState& state) { return state.stream = stream, kSuccess; });
}

}  // namespace

namespace vgpu {

bool scalars_on_device(void* handle) {
  return with_state(handle, [](const HandleState& state) { return state.pointer_mode == 1; });
}
void* stream_of_handle(void* handle) {
  return with_state(handle, [](const HandleState& state) { return state.stream; });
}

}  // namespace vgpu

API int cublasSetPointerMode_v2(void* handle, int mode) {
  return with_state(handle, [=](HandleState& state) { return state.pointer_mode = mode, kSuccess; });
}
API int cublasGetPointerMode_v2(void* handle, int* mode) { return *mode = scalars_on_device(handle), kSuccess; }
API int cublasSetStream_v2(void* handle, void* stream) { return set_stream(handle, stream); }
API int cublasGetStream_v2(void* handle, void** stream) { return *stream = stream_of_handle(handle), kSuccess; }

API int cudnnSetStream(void* handle, void* stream) { return set_stream(handle, stream); }
API int cudnnGetStream(void* handle, void** stream) { return *stream = stream_of_handle(handle), kSuccess; }
