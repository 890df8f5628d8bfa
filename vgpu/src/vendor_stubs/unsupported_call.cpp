// Answers a vendor call that has no implementation: logs its name and returns the library's status.
#include "unsupported_call.h"

#include "driver/api.h"
#include "driver/unsupported_log.h"

#include <string_view>

namespace vgpu {
namespace {

struct Library {
  std::string_view name;
  int not_supported;
};
constexpr Library kLibraries[] = {{"cublas", 15},  {"cudnn", 9},     {"cufft", 16}, {"curand", 999},
                                  {"cusolver", 9}, {"cusparse", 10}, {"nccl", 5}};

int not_supported(std::string_view call) {
  for (const Library& one : kLibraries)
    if (call.substr(0, one.name.size()) == one.name) return one.not_supported;
  return kNotSupported;
}

}  // namespace

int report_unsupported(const char* call) { return note_unsupported(call), not_supported(call); }

int report_unsupported_on_stream(const char* call) {
  int status = report_unsupported(call);
  return raise_python_error(call) ? kSuccess : status;
}

}  // namespace vgpu
