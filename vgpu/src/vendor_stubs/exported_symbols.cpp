// One function for each name that a framework asks of a vendor library, and that has no file of its own.  The lists say what
// each does: frameworks end the process where handles are not made or settings not taken; what computes is not supported.
#include "driver/api.h"
#include "unsupported_call.h"

// `first` is the call's first argument: where the handle goes.
#define CREATE(name) \
  API int name(void** first) { return *first = vgpu::dummy_handle(), vgpu::kSuccess; }
#define ACCEPT(name) \
  API int name() { return vgpu::kSuccess; }
#define UNSUPPORTED(name) \
  API int name() { return vgpu::report_unsupported(#name); }
#define NULL_POINTER(name) \
  API void* name() { return vgpu::report_unsupported(#name), nullptr; }
// Where a Python program can get an exception, the call itself succeeds: a failed stream would end TensorFlow's process.
#define UNSUPPORTED_ON_STREAM(name) \
  API int name() { return vgpu::report_unsupported_on_stream(#name); }
#include "cublas.def"
#include "cudnn.def"
#include "cufft.def"
#include "cufile.def"
#include "cupti.def"
#include "curand.def"
#include "cusolver.def"
#include "cusparse.def"
#include "cusparselt.def"
#include "nccl.def"
#include "nvshmem.def"
#include "nvtx.def"
