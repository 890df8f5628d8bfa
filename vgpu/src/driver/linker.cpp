// The linker's calls: PTX and containers of PTX joined into one text, which stands for the machine code that a card's driver
// would make.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api.h"
#include "handles.h"
#include "image/fatbin.h"
#include "ptx/link.h"

using namespace vgpu;

namespace {

// CUjit_option: where the caller wants to read why something failed.
enum : int { kErrorLog = 5, kErrorLogBytes = 6 };

struct Link {
  std::vector<std::string> texts;
  std::string whole;
  char* log = nullptr;
  size_t log_bytes = 0;

  int tell(int error) const {
    if (error && log && log_bytes) std::snprintf(log, log_bytes, "%s", Device::get().last_error_message().c_str());
    return error;
  }
};

// Under the device's lock, with what is said of a failure in the caller's log.
template <class F> int linking(void* state, F f) {
  Link* known = alive<Link>(state);
  if (!known) return kInvalidHandle;
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  Link& link = *known;
  return link.tell(translate_exceptions([&] { return f(link); }));
}

std::string contents(std::FILE* file) {
  std::string all;
  char piece[65536];
  while (size_t n = std::fread(piece, 1, sizeof piece, file)) all.append(piece, n);
  return all;
}

// NVIDIA's library of device functions, as a file: those that are known here are the device's own.
bool device_library(const std::string& path) {
  return path.size() >= 14 && path.compare(path.size() - 14, 14, "libcudadevrt.a") == 0;
}

}  // namespace

API int cuLinkCreate_v2(unsigned count, const int* options, void** values, void** state) {
  if (!state || (count && (!options || !values))) return kInvalidValue;
  auto made = std::make_unique<Link>();
  for (unsigned k = 0; k < count; k++) {
    if (options[k] == kErrorLog) made->log = static_cast<char*>(values[k]);
    if (options[k] == kErrorLogBytes) made->log_bytes = static_cast<size_t>(address(values[k]));
  }
  return *state = Handles<Link>::all().add(std::move(made)), kSuccess;
}
API int cuLinkAddData_v2(void* state, int, const void* data, size_t bytes, const char*, unsigned, const int*, void**) {
  if (!data || !bytes) return kInvalidValue;
  return linking(state, [&](Link& link) {
    std::string own(static_cast<const char*>(data), bytes);  // with an end of its own
    Device::get().register_arch(target_arch(own.c_str()));
    return link.texts.push_back(select_ptx(own.c_str(), Device::get().capability()).bytes), kSuccess;
  });
}
API int cuLinkAddFile_v2(void* state, int kind, const char* path, unsigned, const int*, void**) {
  if (!alive<Link>(state)) return kInvalidHandle;
  if (!path) return kInvalidValue;
  if (device_library(path)) return kSuccess;
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return kFileNotFound;
  std::string all = contents(file);
  std::fclose(file);
  return cuLinkAddData_v2(state, kind, all.data(), all.size(), path, 0, nullptr, nullptr);
}
API int cuLinkComplete(void* state, const void** image, size_t* bytes) {
  return linking(state, [&](Link& link) {
    if (link.texts.empty() || !image || !bytes) return kInvalidValue;
    link.whole = ptx::link_modules(link.texts);
    return *image = link.whole.c_str(), *bytes = link.whole.size() + 1, kSuccess;
  });
}
API int cuLinkDestroy(void* state) { return Handles<Link>::all().take(state) ? kSuccess : kInvalidHandle; }
