#include "unsupported_log.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "api.h"

namespace vgpu {
namespace {

class Names {  // each once, in the order in which they first came
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
  void forget() {
    std::lock_guard<std::mutex> hold(lock_);
    all_.clear();
  }

 private:
  std::mutex lock_;
  std::vector<std::string> all_;
};

Names& refused() {
  static Names* one = new Names;
  return *one;
}
Names& stood_in() {
  static Names* one = new Names;
  return *one;
}

}  // namespace

void note_refused(const std::string& what) {
  if (refused().add(what)) std::fprintf(stderr, "vgpu: not on the virtual GPU: %s\n", what.c_str());
}

void note_stood_in(const std::string& what) {
  if (stood_in().add(what))
    std::fprintf(stderr, "vgpu: %s is stood in for on the CPU: its last bits are not NVIDIA's\n", what.c_str());
}

}  // namespace vgpu

// What was refused since the start or the last vgpu_forget_refused(), one name a line; valid until this thread's next call.
API const char* vgpu_refused() {
  thread_local std::string text;
  return (text = vgpu::refused().text()).c_str();
}
API void vgpu_forget_refused() { vgpu::refused().forget(); }

// The calls that were stood in for since the start, likewise.
API const char* vgpu_stood_in() {
  thread_local std::string text;
  return (text = vgpu::stood_in().text()).c_str();
}
