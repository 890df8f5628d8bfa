// Runs a CPU fallback in stream order, checks its memory, and names it in reports.
#include "fallback.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "driver/capture.h"
#include "driver/settings.h"
#include "driver/streams.h"
#include "vendor_stubs/unsupported_call.h"

namespace vgpu {
namespace {

struct Library {
  std::string_view name;
  int failed, bad;
};
constexpr Library kLibraries[] = {{"cublas", 13, 7}, {"cudnn", 8, 3}};

// An access outside of what was allocated.
struct OutOfBounds : std::exception {
  explicit OutOfBounds(uint64_t at) : address(at) {}
  uint64_t address;
};

const Library* library_of(std::string_view call) {
  for (const Library& one : kLibraries)
    if (call.substr(0, one.name.size()) == one.name) return &one;
  return nullptr;
}

DeviceMemory& memory_of(uint64_t at, uint64_t bytes) {
  DeviceMemory& memory = Device::get().memory();
  if (!memory.find(at).contains(at, at + bytes)) throw OutOfBounds(at);
  return memory;
}

thread_local uint64_t never_written;  // the first such place that the call reads

void tell_never_written(const char* call) {
  const Allocation found = Device::get().memory().find(never_written);
  std::fprintf(stderr, "vgpu: never written in %s: a read at byte %llu of allocation %llu\n", call,
               static_cast<unsigned long long>(never_written - found.origin), static_cast<unsigned long long>(found.number));
}

int refuse(const char* call, WhenDisabled when_disabled) {
  return when_disabled == WhenDisabled::Trial ? report_unsupported(call) : report_unsupported_on_stream(call);
}

// The library's status after f().  FallbackUnsupported is the caller's.
template <class F> int status_of(const char* call, F f) {
  const Library& library = *library_of(call);
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  if (device.sticky_error() != kSuccess) return library.failed;
  try {
    return f(), kSuccess;
  } catch (const FallbackUnsupported&) { throw; } catch (const InvalidValue&) {
    return library.bad;
  } catch (const OutOfBounds& error) {
    char text[200];
    std::snprintf(text, sizeof text, "an access outside of what was allocated in %s, address 0x%llx", call,
                  static_cast<unsigned long long>(error.address));
    device.set_sticky_error(kIllegalAddress, text);
  } catch (const std::exception& error) { device.set_last_error(std::string(call) + ": " + error.what()); }
  return library.failed;
}

template <class F> int run_now(const char* call, F f) {
  return status_of(call, [&] {
    never_written = 0;
    f();
    if (never_written) tell_never_written(call);
    Device::get().record_fallback(call);
  });
}

// At a launch of the graph, maybe in the thread of deferred work: CUDA's result.
CudaResult run_captured(const char* call, const Operation& operation) {
  try {
    if (!run_now(call, operation)) return kSuccess;
  } catch (const FallbackUnsupported&) { return report_unsupported(call), kNotSupported; }
  const CudaResult fault = Device::get().sticky_error();
  return fault ? fault : kLaunchFailed;
}

}  // namespace

bool is_fallback_enabled(const char* call) {
  const Library* library = library_of(call);
  return library && settings().cpu_fallbacks.count(std::string(library->name));
}

void check_read_strided(const void* at, uint64_t bytes, uint64_t step, uint64_t count) {
  if (!bytes || !count) return;
  const DeviceMemory& memory = memory_of(address(at), (count - 1) * step + bytes);
  for (uint64_t k = 0; k < count && !never_written; k++) never_written = memory.first_unwritten(address(at) + k * step, bytes);
}
void check_write_strided(void* at, uint64_t bytes, uint64_t step, uint64_t count) {
  if (!bytes || !count) return;
  DeviceMemory& memory = memory_of(address(at), (count - 1) * step + bytes);
  for (uint64_t k = 0; k < count; k++) memory.mark_written(address(at) + k * step, bytes);
}
void check_read(const void* at, uint64_t bytes) { check_read_strided(at, bytes, bytes, 1); }
void check_write(void* at, uint64_t bytes) { check_write_strided(at, bytes, bytes, 1); }

int run_fallback_erased(const char* call, WhenDisabled when_disabled, void (*f)(void*), void* with) {
  if (!is_fallback_enabled(call) || is_anything_captured()) return refuse(call, when_disabled);
  wait_for_all();  // in its turn: behind what was asked of the streams before
  try {
    return run_now(call, [=] { f(with); });
  } catch (const FallbackUnsupported&) { return refuse(call, when_disabled); }
}

int run_fallback_on(const char* call, void* handle, const std::function<Operation()>& prepare, WhenDisabled when_disabled) {
  if (!is_fallback_enabled(call)) return refuse(call, when_disabled);
  Stream* stream = stream_of(handle);
  if (!stream) return library_of(call)->bad;
  try {
    Operation operation;
    if (int wrong = status_of(call, [&] { operation = prepare(); })) return wrong;
    auto step = [=](void* later) { return in_order(later, [=] { return run_captured(call, operation); }); };
    if (auto taken = capture(*stream, step)) return *taken ? library_of(call)->failed : kSuccess;
    wait_for_all();
    return run_now(call, operation);
  } catch (const FallbackUnsupported&) { return refuse(call, when_disabled); }
}

}  // namespace vgpu
