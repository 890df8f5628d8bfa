// CUDA's errors by name, as cuda.h and driver_types.h call them, and in words: what was wrong here.
#include <cstdio>

#include "api.h"

using namespace vgpu;

namespace {

struct Name {
  int error;
  const char *driver, *runtime;
};
constexpr Name kNames[] = {
    {0, "CUDA_SUCCESS", "cudaSuccess"},
#define ERROR(number, driver, runtime) {number, driver, runtime},
#include "errors.def"
#undef ERROR
};

const Name* named(int error) {
  for (const Name& one : kNames)
    if (one.error == error) return &one;
  return nullptr;
}

}  // namespace

API int cuGetErrorName(int error, const char** text) {
  if (!text) return kInvalidValue;
  const Name* found = named(error);
  *text = found ? found->driver : nullptr;
  return *text ? kSuccess : kInvalidValue;
}
API const char* cudaGetErrorName(int error) {
  const Name* found = named(error);
  return found && found->runtime ? found->runtime : "unrecognized error code";
}
API int cuGetErrorString(int error, const char** text) {
  if (!text) return kInvalidValue;
  if (!named(error)) return *text = nullptr, kInvalidValue;
  thread_local char words[400];
  if (!error) std::snprintf(words, sizeof words, "no error");
  else std::snprintf(words, sizeof words, "virtual GPU, error %d: %.300s", error, Device::get().last_error_message().c_str());
  return *text = words, kSuccess;
}
API const char* cudaGetErrorString(int error) {
  const char* text = nullptr;
  return cuGetErrorString(error, &text) ? "unrecognized error code" : text;
}
