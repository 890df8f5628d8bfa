// Names of CUDA errors (cuda.h, driver_types.h), and their descriptions, which include the last message of the device.
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

const Name* find_name(int error) {
  for (const Name& name : kNames)
    if (name.error == error) return &name;
  return nullptr;
}

}  // namespace

API int cuGetErrorName(int error, const char** text) {
  if (!text) return kInvalidValue;
  const Name* name = find_name(error);
  *text = name ? name->driver : nullptr;
  return *text ? kSuccess : kInvalidValue;
}
API const char* cudaGetErrorName(int error) {
  const Name* name = find_name(error);
  return name && name->runtime ? name->runtime : "unrecognized error code";
}
API int cuGetErrorString(int error, const char** text) {
  if (!text) return kInvalidValue;
  if (!find_name(error)) return *text = nullptr, kInvalidValue;
  thread_local char description[400];
  if (!error) std::snprintf(description, sizeof description, "no error");
  else
    std::snprintf(description, sizeof description, "virtual GPU, error %d: %.300s", error,
                  Device::get().last_error_message().c_str());
  return *text = description, kSuccess;
}
API const char* cudaGetErrorString(int error) {
  const char* text = nullptr;
  return cuGetErrorString(error, &text) ? "unrecognized error code" : text;
}
