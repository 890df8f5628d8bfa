// Keeps the names of unsupported calls and kernels for vgpu_unsupported_calls().
#include "unsupported_log.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "api.h"

namespace vgpu {
namespace {

class CallLog {  // each once, in the order in which they first came
 public:
  bool add(const std::string& name) {
    std::lock_guard<std::mutex> hold(lock_);
    if (std::find(all_.begin(), all_.end(), name) != all_.end()) return false;
    return all_.push_back(name), true;
  }
  std::string text() {
    std::lock_guard<std::mutex> hold(lock_);
    std::string text;
    for (const std::string& name : all_) text += (text.empty() ? "" : "\n") + name;
    return text;
  }
  void clear() {
    std::lock_guard<std::mutex> hold(lock_);
    all_.clear();
  }

 private:
  std::mutex lock_;
  std::vector<std::string> all_;
};

CallLog& unsupported_calls() {
  static CallLog* one = new CallLog;
  return *one;
}
CallLog& fallback_calls() {
  static CallLog* one = new CallLog;
  return *one;
}

}  // namespace

void note_unsupported(const std::string& what) {
  if (unsupported_calls().add(what)) std::fprintf(stderr, "vgpu: not on the virtual GPU: %s\n", what.c_str());
}

void note_fallback(const std::string& what) {
  if (fallback_calls().add(what))
    std::fprintf(stderr, "vgpu: %s is computed by a CPU fallback: its last bits are not NVIDIA's\n", what.c_str());
}

}  // namespace vgpu

// What was not supported since the start or the last vgpu_clear_unsupported_calls(), one name a line; valid until this thread's next call.
API const char* vgpu_unsupported_calls() {
  thread_local std::string text;
  return (text = vgpu::unsupported_calls().text()).c_str();
}
API void vgpu_clear_unsupported_calls() { vgpu::unsupported_calls().clear(); }

// The calls computed by CPU fallbacks since the start, likewise.
API const char* vgpu_fallback_calls() {
  thread_local std::string text;
  return (text = vgpu::fallback_calls().text()).c_str();
}
