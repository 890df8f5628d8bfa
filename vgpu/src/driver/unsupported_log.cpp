// Stores the names of unsupported calls, and of fallbacks, for vgpu_unsupported_calls() and vgpu_fallback_calls().
#include "unsupported_log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

#include "analysis/launch_report.h"
#include "api.h"

namespace vgpu {
namespace {

class CallLog {  // unique names in the order of their first calls
 public:
  bool add(const std::string& name) {
    std::lock_guard<std::mutex> guard(lock_);
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return false;
    return names_.push_back(name), true;
  }
  std::vector<std::string> names() {
    std::lock_guard<std::mutex> guard(lock_);
    return names_;
  }
  std::string text() {
    std::string text;
    for (const std::string& name : names()) text += (text.empty() ? "" : "\n") + name;
    return text;
  }
  void clear() {
    std::lock_guard<std::mutex> guard(lock_);
    names_.clear();
  }

 private:
  std::mutex lock_;
  std::vector<std::string> names_;
};

CallLog& unsupported_calls() {
  static CallLog* log = new CallLog;
  return *log;
}
CallLog& fallback_calls() {
  static CallLog* log = new CallLog;
  return *log;
}

std::atomic<LaunchReport*> proof_report{nullptr};

}  // namespace

void note_unsupported(const std::string& name) {
  if (!unsupported_calls().add(name)) return;
  std::fprintf(stderr, "vgpu: not on the virtual GPU: %s\n", name.c_str());
  if (LaunchReport* report = proof_report) report->add_unsupported(name);
}

void note_refused_launch(const std::string& kernel) {
  if (LaunchReport* report = proof_report) report->add_refused_launch(kernel);
}

void report_missing_work_to(LaunchReport& report) {
  for (const std::string& name : unsupported_calls().names()) report.add_unsupported(name);
  proof_report = &report;
}

void note_fallback(const std::string& name) {
  if (fallback_calls().add(name))
    std::fprintf(stderr, "vgpu: %s is computed by a CPU fallback: its last bits are not NVIDIA's\n", name.c_str());
}

}  // namespace vgpu

// Returns the unsupported calls since the start or the last vgpu_clear_unsupported_calls(), one name a line; valid until this
// thread's next call.
API const char* vgpu_unsupported_calls() {
  thread_local std::string text;
  return (text = vgpu::unsupported_calls().text()).c_str();
}
API void vgpu_clear_unsupported_calls() { vgpu::unsupported_calls().clear(); }

// Returns the calls that CPU fallbacks have computed since the start, likewise.
API const char* vgpu_fallback_calls() {
  thread_local std::string text;
  return (text = vgpu::fallback_calls().text()).c_str();
}
