// Runs CPU fallbacks in stream order, checks the memory that they access, and records their calls for reports.
#include "fallback.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "driver/capture.h"
#include "driver/settings.h"
#include "driver/streams.h"
#include "vendor_stubs/library_status.h"
#include "vendor_stubs/unsupported_call.h"

namespace vgpu {
namespace {

// An access outside of allocated memory.
struct OutOfBounds : std::exception {
  explicit OutOfBounds(uint64_t at) : address(at) {}
  uint64_t address;
};

DeviceMemory& memory_of(uint64_t begin, uint64_t bytes) {
  DeviceMemory& memory = Device::get().memory();
  if (!memory.find(begin).contains(begin, begin + bytes)) throw OutOfBounds(begin);
  return memory;
}

thread_local uint64_t uninitialized_address;  // of the call's first read of uninitialized memory; 0: none

void print_uninitialized_read(const char* call) {
  const Allocation allocation = Device::get().memory().find(uninitialized_address);
  std::fprintf(stderr, "vgpu: never written in %s: a read at byte %llu of allocation %llu\n", call,
               static_cast<unsigned long long>(uninitialized_address - allocation.whole_begin),
               static_cast<unsigned long long>(allocation.number));
}

// ReturnError: the call returns an error.  RaiseInPython: in a Python program it succeeds and the program gets an exception.
int refuse(const char* call, OnFailure on_failure) {
  return on_failure == OnFailure::ReturnError ? report_unsupported(call) : report_unsupported_on_stream(call);
}

// Runs f() and returns the library's status.  The caller handles FallbackUnsupported.
template <class F> int status_of(const char* call, F f) {
  const LibraryStatus& library = *library_status(call);
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  if (device.sticky_error() != kSuccess) return library.execution_failed;
  try {
    return f(), kSuccess;
  } catch (const FallbackUnsupported&) { throw; } catch (const InvalidValue&) {
    return library.invalid_value;
  } catch (const OutOfBounds& error) {
    char text[200];
    std::snprintf(text, sizeof text, "an access outside of what was allocated in %s, address 0x%llx", call,
                  static_cast<unsigned long long>(error.address));
    device.set_sticky_error(kIllegalAddress, text);
  } catch (const std::exception& error) { device.set_last_error(std::string(call) + ": " + error.what()); }
  return library.execution_failed;
}

template <class F> int run_now(const char* call, F f) {
  return status_of(call, [&] {
    uninitialized_address = 0;
    f();
    if (uninitialized_address) print_uninitialized_read(call);
    Device::get().record_fallback(call);
  });
}

// Runs a captured operation at a launch of its graph, maybe in the thread of deferred work.
CudaResult run_captured(const char* call, const Operation& operation) {
  try {
    if (!run_now(call, operation)) return kSuccess;
  } catch (const FallbackUnsupported&) { return report_unsupported(call), kNotSupported; }
  const CudaResult fault = Device::get().sticky_error();
  return fault ? fault : kLaunchFailed;
}

}  // namespace

bool is_fallback_enabled(const char* call) {
  const LibraryStatus* status = library_status(call);
  return status && settings().cpu_fallbacks.count(std::string(status->library));
}

void check_read_strided(const void* data, uint64_t bytes, uint64_t stride, uint64_t count) {
  if (!bytes || !count) return;
  const DeviceMemory& memory = memory_of(address(data), (count - 1) * stride + bytes);
  for (uint64_t k = 0; k < count && !uninitialized_address; k++)
    uninitialized_address = memory.first_unwritten(address(data) + k * stride, bytes);
}
void check_write_strided(void* data, uint64_t bytes, uint64_t stride, uint64_t count) {
  if (!bytes || !count) return;
  DeviceMemory& memory = memory_of(address(data), (count - 1) * stride + bytes);
  for (uint64_t k = 0; k < count; k++) memory.mark_written(address(data) + k * stride, bytes);
}
void check_read(const void* data, uint64_t bytes) { check_read_strided(data, bytes, bytes, 1); }
void check_write(void* data, uint64_t bytes) { check_write_strided(data, bytes, bytes, 1); }

int run_if_fallback_enabled(const char* call, const std::function<void()>& f) {
  if (!is_fallback_enabled(call)) return report_unsupported(call);
  try {
    return f(), kSuccess;
  } catch (const InvalidValue&) { return library_status(call)->invalid_value; } catch (const FallbackUnsupported&) {
    return report_unsupported(call);
  }
}

int run_fallback_erased(const char* call, OnFailure on_failure, void (*f)(void*), void* context) {
  if (!is_fallback_enabled(call) || is_anything_captured()) return refuse(call, on_failure);
  wait_for_all();
  try {
    return run_now(call, [=] { f(context); });
  } catch (const FallbackUnsupported&) { return refuse(call, on_failure); }
}

int run_fallback_on_stream(const char* call, void* handle, const std::function<Operation()>& prepare, OnFailure on_failure) {
  if (!is_fallback_enabled(call)) return refuse(call, on_failure);
  Stream* stream = stream_of(handle);
  if (!stream) return library_status(call)->invalid_value;
  try {
    Operation operation;
    if (int error = status_of(call, [&] { operation = prepare(); })) return error;
    auto step = [=](void* graph_stream) { return in_order(graph_stream, [=] { return run_captured(call, operation); }); };
    if (auto capture_result = capture(*stream, step))
      return *capture_result ? library_status(call)->execution_failed : kSuccess;
    wait_for_all();
    return run_now(call, operation);
  } catch (const FallbackUnsupported&) { return refuse(call, on_failure); }
}

}  // namespace vgpu
