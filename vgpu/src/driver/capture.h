// Capture of streams: what is asked of a captured one becomes a node of a graph, and is not done (CUDA C++ Programming Guide,
// "Creating a graph using stream capture").
//
// A stream is captured from cuStreamBeginCapture on, or from its waiting for an event that was recorded in the capture.
#pragma once
#include <optional>

#include "graphs.h"
#include "streams.h"

namespace vgpu {

bool is_anything_captured();

// The result of a call that a capture takes or forbids; nullopt: it is to be done as ever.
std::optional<int> add_node(Stream& on, const std::function<CudaResult(Step&)>& make);
template <class F> std::optional<int> capture_made(Stream& on, F make) {  // make(step): CUDA's result
  return is_anything_captured() ? add_node(on, make) : std::nullopt;
}
template <class F> std::optional<int> capture(Stream& on, F step) {
  return capture_made(on, [&](Step& to) { return to = step, kSuccess; });
}
std::optional<int> capture_record(const Event& event, Stream& on);
std::optional<int> capture_wait(Stream& waits, const Event& on);

// Errors that invalidate captures.
CudaResult refuse_if_captured(const Stream& of);  // its state is asked for, or a callback added
CudaResult refuse_if_captured(const Event& of);
CudaResult refuse_while_capturing();  // a call that may depend on a captured stream, such as cuMemAlloc
CudaResult refuse_legacy();           // a synchronous call, on the legacy default stream

void forget_captures_of(const Stream& gone);

}  // namespace vgpu
