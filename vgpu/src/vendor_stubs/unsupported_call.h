// Calls of vendor libraries (cuBLAS, cuDNN, ...) that the virtual GPU does not support.
#pragma once

namespace vgpu {

constexpr const char* kNotSupportedText = "not on the virtual GPU";

// Logs the call; returns its library's status for "not supported".
int report_unsupported(const char* call);

// For calls that frameworks make on a stream: TensorFlow marks a stream for ever once one of them failed, and ends the process
// at the stream's next copy.  So where a Python program can be told, the call succeeds, its results are what lay there, and
// the program gets an exception in the line that made it.  Otherwise it
// is as report_unsupported().
int report_unsupported_on_stream(const char* call);

// Raised by the interpreter of this process as soon as it runs again; false: there is none.
bool raise_python_error(const char* call);

}  // namespace vgpu
