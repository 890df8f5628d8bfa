// What frameworks ask of closed libraries (cuBLAS, cuDNN, ...), and does not exist here.
#pragma once

namespace vgpu {

constexpr const char* kText = "not on the virtual GPU";

// Notes the call; gives back its library's own word for "not supported".
int refuse(const char* call);

// For calls that frameworks make on a stream: TensorFlow marks a stream for ever once one of them failed, and ends the process
// at the stream's next copy.  So where a Python program can be told, the call succeeds, its results are what lay there, and
// the program gets an exception in the line that made it.  Otherwise as refuse().
int refuse_on_stream(const char* call);

// Raised by the interpreter of this process as soon as it runs again; false: there is none.
bool raise_in_python(const char* call);

}  // namespace vgpu
