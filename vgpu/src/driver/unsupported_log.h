// Log of unsupported calls and kernels, and of calls that CPU fallbacks have computed.
#pragma once
#include <string>

namespace vgpu {

class LaunchReport;

// These log each name once, and print it to stderr then.
void note_unsupported(const std::string& name);
// Writes what is unsupported to this report, too, from the first call on; it must outlive the process's calls.
void report_unsupported_to(LaunchReport& report);
void note_fallback(const std::string& name);  // computed on the CPU instead of by the vendor library

}  // namespace vgpu
