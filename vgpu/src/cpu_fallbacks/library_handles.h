// The state of cuBLAS and cuDNN handles: the pointer mode (whether alpha and beta lie on the host or the device), and the stream.
#pragma once

namespace vgpu {

bool scalars_on_device(void* handle);  // set by cublasSetPointerMode()
void* stream_of_handle(void* handle);  // set by cublasSetStream() or cudnnSetStream()

}  // namespace vgpu
