#include "refused.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "api.h"

namespace vgpu {
namespace {

struct Refused {
  std::mutex lock;
  std::vector<std::string> names;  // in the order in which they were first asked for
  static Refused& get() { static Refused* one = new Refused; return *one; }
};

}  // namespace

void note_refused(const std::string& what) {
  Refused& refused = Refused::get();
  std::lock_guard<std::mutex> hold(refused.lock);
  if (std::find(refused.names.begin(), refused.names.end(), what) != refused.names.end()) return;
  refused.names.push_back(what);
  std::fprintf(stderr, "vgpu: not on the virtual GPU: %s\n", what.c_str());
}

}  // namespace vgpu

// What was refused since the start or the last vgpu_forget_refused(), one name a line; valid until this thread's next call.
API const char* vgpu_refused() {
  thread_local std::string text;
  vgpu::Refused& refused = vgpu::Refused::get();
  std::lock_guard<std::mutex> hold(refused.lock);
  text.clear();
  for (const std::string& name : refused.names) text += (text.empty() ? "" : "\n") + name;
  return text.c_str();
}
API void vgpu_forget_refused() {
  vgpu::Refused& refused = vgpu::Refused::get();
  std::lock_guard<std::mutex> hold(refused.lock);
  refused.names.clear();
}
