// What the caller sets: the variables of the environment, each with what it may say.  A value that is none ends the process
// with status 2: another device than the one asked for would be a false witness.
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
  std::string code = "ptx";  // VGPU_CODE: which is taken where a container has both
  uint64_t memory_mib = 2048;  // VGPU_MEMORY_MIB
  uint64_t multiprocessors = 2;  // VGPU_MULTIPROCESSORS: few, so that grids stay small
  std::optional<uint64_t> placement;  // VGPU_PLACEMENT: a seed
  uint64_t limit = 200'000'000'000;  // VGPU_MAX_INSTRUCTIONS: instructions of a launch; 0: none
  uint64_t log = 0;  // VGPU_LOG: 1: launches
  std::set<std::string> checks;  // VGPU_CHECK
  std::set<std::string> cpu_fallbacks;  // VGPU_CPU_FALLBACKS
  std::string report, used;  // VGPU_REPORT, VGPU_USED
  uint64_t traced = 0;  // VGPU_MEMORY_TRACE
  std::string trace;
};

// Read once, when the device is first used.
const Settings& settings();

}  // namespace vgpu
