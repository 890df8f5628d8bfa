// Settings from environment variables.  An invalid value ends the process with status 2, since results of a device other than the
// requested one would be false evidence.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "core/schedule.h"

namespace vgpu {

struct Settings {
  Schedule schedule{Schedule::Kind::Serial, 0};  // VGPU_SCHEDULE
  uint64_t capability = 0;  // VGPU_COMPUTE_CAPABILITY; 0: that of the newest PTX that a program registers
  std::string code = "ptx";  // VGPU_CODE: the code to prefer if a container has both, ptx or sass
  uint64_t memory_mib = 2048;  // VGPU_MEMORY_MIB
  uint64_t multiprocessors = 2;  // VGPU_MULTIPROCESSORS: few, so that grids stay small
  std::optional<uint64_t> placement;  // VGPU_PLACEMENT: a seed for the addresses of allocations
  uint64_t max_instructions = 200'000'000'000;  // VGPU_MAX_INSTRUCTIONS: for each launch; 0: no limit
  uint64_t log = 0;  // VGPU_LOG: 1: print launches to stderr
  std::set<std::string> checks;  // VGPU_CHECK: racecheck, initcheck, memcheck, order
  std::set<std::string> cpu_fallbacks;  // VGPU_CPU_FALLBACKS: vendor libraries whose calls are computed on the CPU
  std::string report_file, used_file;  // VGPU_REPORT: gets a line for each launch; VGPU_USED: created when the device is used
  uint64_t traced_launch = 0;  // VGPU_MEMORY_TRACE: the launch whose atomics and stores are written to trace_file
  std::string trace_file;
};

// Returns the settings, which are read at the first use of the device.
const Settings& settings();

}  // namespace vgpu
