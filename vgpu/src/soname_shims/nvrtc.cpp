// NVIDIA's run-time compiler where it is not installed: each call fails, and a program that needs it says so.  It needs no
// GPU, so an installed one is used as it is.  These functions are in a library of their own, because in libvgpu.so they would be
// found before those of an installed one.  VERSION: CUDA's version, which the build defines.
#define API extern "C" __attribute__((visibility("default")))

extern "C" int cuInit(unsigned);
// A reference to libvgpu.so, without which the linker would drop the dependency on it.
extern "C" __attribute__((visibility("default"))) int (*const vgpu_linked)(unsigned) = cuInit;

namespace {
constexpr int kInternalError = 11;
}

#define FAILS(name) \
  API int name() { return kInternalError; }
FAILS(nvrtcAddNameExpression)
FAILS(nvrtcCompileProgram)
FAILS(nvrtcCreateProgram)
FAILS(nvrtcDestroyProgram)
FAILS(nvrtcGetCUBIN)
FAILS(nvrtcGetCUBINSize)
FAILS(nvrtcGetLoweredName)
FAILS(nvrtcGetPTX)
FAILS(nvrtcGetPTXSize)
FAILS(nvrtcGetProgramLog)
FAILS(nvrtcGetProgramLogSize)
API const char* nvrtcGetErrorString(int) { return "NVRTC is not installed (pip install nvidia-cuda-nvrtc)"; }
API int nvrtcVersion(int* major, int* minor) { return *major = VERSION / 1000, *minor = VERSION % 1000 / 10, 0; }
