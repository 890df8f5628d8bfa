// Stream capture: work for a captured stream becomes a node of a graph, and is not executed (CUDA C++ Programming Guide,
// "Creating a graph using stream capture").  A stream is captured after cuStreamBeginCapture, or after it waits for an event that
// was recorded in a capture.
#pragma once
#include <optional>

#include "graphs.h"
#include "streams.h"

namespace vgpu {

bool is_anything_captured();

// These return the result of a call that was captured or that a capture forbids; nullopt: the caller executes the work.
// make_step(step): sets the node's step, a function that enqueues its work at each launch of the graph; returns a CUDA result.
std::optional<int> add_node(Stream& stream, const std::function<CudaResult(Step&)>& make_step);
template <class F> std::optional<int> capture_with(Stream& stream, F make_step) {
  return is_anything_captured() ? add_node(stream, make_step) : std::nullopt;
}
template <class F> std::optional<int> capture(Stream& stream, F step) {
  return capture_with(stream, [&](Step& node_step) { return node_step = step, kSuccess; });
}
std::optional<int> capture_record(const Event& event, Stream& stream);
std::optional<int> capture_wait(Stream& stream, const Event& event);

// These return the error of a call that captures forbid, and invalidate the captures; otherwise kSuccess.
CudaResult refuse_if_captured(const Stream& stream);  // for queries of the stream's state, and for callbacks
CudaResult refuse_if_captured(const Event& event);
CudaResult refuse_while_capturing();  // for calls that may depend on a captured stream, such as cuMemAlloc
CudaResult refuse_synchronous();  // for synchronous calls, which use the default stream

void forget_captures_of(const Stream& stream);  // for a stream that is destroyed: invalidates its capture

}  // namespace vgpu
