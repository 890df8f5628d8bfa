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

// Check memory that the call is about to read or write: it must lie within one allocation, and initcheck reports reads of
// uninitialized bytes.  Strided: `count` pieces of `bytes` each, `stride` bytes apart.
void check_read(const void* data, uint64_t bytes);
void check_write(void* data, uint64_t bytes);
void check_read_strided(const void* data, uint64_t bytes, uint64_t stride, uint64_t count);
void check_write_strided(void* data, uint64_t bytes, uint64_t stride, uint64_t count);

// How a call fails if its fallback is disabled or does not support the arguments.  ReturnError: it returns an error, by
// report_unsupported().  RaiseInPython: in a Python program it succeeds and the program gets an exception, since TensorFlow ends the
// process after an error on a stream, by report_unsupported_on_stream().
enum class OnFailure : uint8_t { RaiseInPython, ReturnError };

// Runs f(context) as the fallback of `call`, after all work on streams; returns the library's status.
int run_fallback_erased(const char* call, OnFailure on_failure, void (*f)(void*), void* context);

template <class F> int run_fallback(const char* call, F f, OnFailure on_failure = OnFailure::RaiseInPython) {
  return run_fallback_erased(call, on_failure, [](void* context) { (*static_cast<F*>(context))(); }, &f);
}

// Likewise for a call whose handle has a stream: runs the operation that prepare() returns, or adds it to the graph if that
// stream is captured.  prepare() checks the arguments, and copies those that the host may change after the call.
using Operation = std::function<void()>;
int run_fallback_on_stream(const char* call, void* stream, const std::function<Operation()>& prepare,
                           OnFailure on_failure = OnFailure::RaiseInPython);

// Runs f() as a call that computes nothing on the device, such as the size of a workspace: the library's status, or that of a
// call that is not supported if the fallback is off or f() throws FallbackUnsupported.
int run_if_fallback_enabled(const char* call, const std::function<void()>& f);

bool is_fallback_enabled(const char* call);  // whether VGPU_CPU_FALLBACKS names its library

}  // namespace vgpu
