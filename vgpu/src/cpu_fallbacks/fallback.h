// CPU fallbacks: calls of vendor libraries computed on the CPU, one element after the other, so that each run gives the same
// bytes.  Off unless VGPU_CPU_FALLBACKS names the library: without it the call is not supported, like all others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "driver/api.h"

namespace vgpu {

// There is a fallback for this call, but not with these arguments: the call is not supported.
struct FallbackUnsupported : std::exception {};
// The library's status for invalid arguments, e.g. CUBLAS_STATUS_INVALID_VALUE.
struct InvalidValue : std::exception {};

// Declares memory that the call is about to read or write: it must lie within one allocation, and initcheck reports reads of
// uninitialized bytes.  Strided: `count` pieces of `bytes` each, `step` bytes apart.
void check_read(const void* at, uint64_t bytes);
void check_write(void* at, uint64_t bytes);
void check_read_strided(const void* at, uint64_t bytes, uint64_t step, uint64_t count);
void check_write_strided(void* at, uint64_t bytes, uint64_t step, uint64_t count);

enum class WhenDisabled : uint8_t { OnStream, Trial };  // how the call fails then: see unsupported_call.h

// Runs f as the call, in order with the launches; returns the library's status.
int run_fallback_erased(const char* call, WhenDisabled when_disabled, void (*f)(void*), void* with);

template <class F> int run_fallback(const char* call, F f, WhenDisabled when_disabled = WhenDisabled::OnStream) {
  return run_fallback_erased(call, when_disabled, [](void* with) { (*static_cast<F*>(with))(); }, &f);
}

// Likewise for a call whose handle has a stream: what prepare() gives is run, or captured, where that stream is captured.
// prepare() checks the arguments, and copies those that the host may change after the call.
using Operation = std::function<void()>;
int run_fallback_on(const char* call, void* stream, const std::function<Operation()>& prepare,
                    WhenDisabled when_disabled = WhenDisabled::OnStream);

bool is_fallback_enabled(const char* call);  // is its library switched on?

}  // namespace vgpu
