// Log of unsupported calls and kernels, and of calls that CPU fallbacks have computed.
#pragma once
#include <string>

namespace vgpu {

class LaunchReport;

// These log each name once, and print it to stderr then.
void note_unsupported(const std::string& name);
void note_fallback(const std::string& name);  // computed on the CPU instead of by the vendor library

// For VGPU_CHECK=order, a launch of this kernel fails before it begins.
void note_refused_launch(const std::string& kernel);
// Writes what is unsupported or refused to this report, too, from the first call on; it must outlive the process's calls.
void report_missing_work_to(LaunchReport& report);

}  // namespace vgpu
