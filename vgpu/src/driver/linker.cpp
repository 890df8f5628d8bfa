// Calls of the linker, which joins PTX and containers of PTX into one text; a real driver would produce machine code.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api.h"
#include "handles.h"
#include "image/fatbin.h"
#include "ptx/link.h"

using namespace vgpu;

namespace {

// CUjit_option: the caller's buffer for error messages.
enum : int { kErrorLog = 5, kErrorLogBytes = 6 };

struct Link {
  std::vector<std::string> texts;
  std::string linked_text;
  char* log = nullptr;
  size_t log_bytes = 0;

  int log_error(int error) const {
    if (error && log && log_bytes) std::snprintf(log, log_bytes, "%s", Device::get().last_error_message().c_str());
    return error;
  }
};

// Runs f(link) with the device's lock held; writes the message of a failure to the caller's log.
template <class F> int with_link(void* state, F f) {
  Link* found_link = find_alive<Link>(state);
  if (!found_link) return kInvalidHandle;
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  Link& link = *found_link;
  return link.log_error(translate_exceptions([&] { return f(link); }));
}

std::string read_file(std::FILE* file) {
  std::string result;
  char buffer[65536];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, file)) result.append(buffer, n);
  return result;
}

// Returns whether this is NVIDIA's library of device functions, whose supported functions are built in (ptx/cudadevrt.h).
bool is_device_library(const std::string& path) {
  return path.size() >= 14 && path.compare(path.size() - 14, 14, "libcudadevrt.a") == 0;
}

}  // namespace

API int cuLinkCreate_v2(unsigned count, const int* options, void** values, void** state) {
  if (!state || (count && (!options || !values))) return kInvalidValue;
  auto link = std::make_unique<Link>();
  for (unsigned k = 0; k < count; k++) {
    if (options[k] == kErrorLog) link->log = static_cast<char*>(values[k]);
    if (options[k] == kErrorLogBytes) link->log_bytes = static_cast<size_t>(address(values[k]));
  }
  return *state = Handles<Link>::all().add(std::move(link)), kSuccess;
}
API int cuLinkAddData_v2(void* state, int, const void* data, size_t bytes, const char*, unsigned, const int*, void**) {
  if (!data || !bytes) return kInvalidValue;
  return with_link(state, [&](Link& link) {
    std::string image(static_cast<const char*>(data), bytes);  // a copy with a terminating zero
    Device::get().register_arch(target_arch(image.c_str()));
    return link.texts.push_back(select_ptx(image.c_str(), Device::get().capability()).bytes), kSuccess;
  });
}
API int cuLinkAddFile_v2(void* state, int kind, const char* path, unsigned, const int*, void**) {
  if (!find_alive<Link>(state)) return kInvalidHandle;
  if (!path) return kInvalidValue;
  if (is_device_library(path)) return kSuccess;
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return kFileNotFound;
  std::string image = read_file(file);
  std::fclose(file);
  return cuLinkAddData_v2(state, kind, image.data(), image.size(), path, 0, nullptr, nullptr);
}
API int cuLinkComplete(void* state, const void** image, size_t* bytes) {
  return with_link(state, [&](Link& link) {
    if (link.texts.empty() || !image || !bytes) return kInvalidValue;
    link.linked_text = ptx::link_modules(link.texts);
    return *image = link.linked_text.c_str(), *bytes = link.linked_text.size() + 1, kSuccess;
  });
}
API int cuLinkDestroy(void* state) { return Handles<Link>::all().remove(state) ? kSuccess : kInvalidHandle; }
