#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "../error.h"
#include "../machine/initialised.h"
#include "../machine/races.h"
#include "../machine/report.h"
#include "../machine/trace.h"
#include "refused.h"

namespace vgpu {
namespace {

constexpr uint32_t kMostShared = 98304;  // of a block, the most that it may ask for

// What the caller sets: VGPU_SCHEDULE, VGPU_CAPABILITY (70, or that of the newest PTX that a program registers),
// VGPU_MEMORY_MIB, VGPU_LOG (1: launches), VGPU_LIMIT (instructions of a launch).
std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}
uint64_t number(const char* name, const char* otherwise) { return std::strtoull(text(name, otherwise).c_str(), nullptr, 0); }

Schedule chosen() {
  try {
    return Schedule::parse(text("VGPU_SCHEDULE", "serial"));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "vgpu: VGPU_SCHEDULE: %s\n", error.what());
    std::exit(2);  // another schedule than the one asked for would be a false witness
  }
}

std::FILE* opened(const char* variable, const std::string& name) {
  std::FILE* file = std::fopen(name.c_str(), "ae");
  if (file) return file;
  std::fprintf(stderr, "vgpu: %s: %s cannot be written\n", variable, name.c_str());
  std::exit(2);
}

// VGPU_CHECK=races,initialised
void check(Observers& all, Memory& memory) {
  for (std::string left = text("VGPU_CHECK", ""); !left.empty();) {
    const std::string word = left.substr(0, left.find(','));
    left.erase(0, word.size() + 1);
    if (word == "races") {
      all.add(std::make_unique<Races>());
    } else if (word == "initialised") {
      all.add(std::make_unique<Initialised>()), memory.watch();
    } else {
      std::fprintf(stderr, "vgpu: VGPU_CHECK: nothing is called %s: races, initialised\n", word.c_str());
      std::exit(2);  // what was asked for would seem to have been looked for
    }
  }
}

// VGPU_USED=FILE: it is there once a program has begun to use the device.
// VGPU_REPORT=FILE, VGPU_TRACE=LAUNCH:FILE, VGPU_CHECK: see machine/report.h, trace.h, races.h and initialised.h.
void observe(Observers& all, Memory& memory) {
  std::string report = text("VGPU_REPORT", ""), trace = text("VGPU_TRACE", ""), used = text("VGPU_USED", "");
  if (!used.empty()) std::fclose(opened("VGPU_USED", used));
  if (!report.empty()) all.add(std::make_unique<Report>(opened("VGPU_REPORT", report)));
  check(all, memory);
  size_t colon = trace.find(':');
  if (colon == std::string::npos) return;
  all.add(std::make_unique<Trace>(std::strtoull(trace.c_str(), nullptr, 10), opened("VGPU_TRACE", trace.substr(colon + 1))));
}

Result result_of(Fault fault) {
  switch (fault) {
    case Fault::None: return kSuccess;
    case Fault::OutOfBounds: return kIllegalAddress;
    case Fault::Misaligned: return kMisalignedAddress;
    default: return kLaunchFailed;
  }
}

// Held to 64 bits, where it could go round.
uint64_t product(const uint32_t size[3]) {
  uint64_t plane = uint64_t(size[0]) * size[1];
  return plane > UINT32_MAX ? plane : plane * size[2];
}

}  // namespace

Device& Device::get() {
  static Device* device = new Device;  // never destroyed: libraries call while they are unloaded
  return *device;
}

Device::Device()
    : memory_(number("VGPU_MEMORY_MIB", "2048") << 20), schedule_(chosen()),
      capability_(static_cast<int>(number("VGPU_CAPABILITY", "70"))), asked_(std::getenv("VGPU_CAPABILITY")),
      log_(static_cast<int>(number("VGPU_LOG", "0"))), limit_(number("VGPU_LIMIT", "200000000000")) {
  observe(observers_, memory_);
}

void Device::refuse(const std::string& why) {
  last_fault_ = why;
  std::fprintf(stderr, "vgpu: %s\n", why.c_str());
}

Result Device::fail(Result fault, const std::string& why) { return refuse(why), sticky_ = fault; }

void Device::stood_in(const char* call) {
  note_stood_in(call);
  observers_.stood_in(call, scheduled_);
}

const Program* Device::program(Kernel& kernel) {
  if (!kernel.program && kernel.refused.empty()) {
    try {
      kernel.program = kernel.module->image->program(kernel.name);
    } catch (const std::exception& error) {
      kernel.refused = error.what();
    }
  }
  if (!kernel.program) {
    last_fault_ = kernel.name + ": " + kernel.refused;
    note_refused(last_fault_);
  }
  return kernel.program;
}

Result Device::launch(Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, void** arguments,
                      const void* packed, size_t packed_bytes) {
  return guarded([&] { return run_kernel(kernel, grid, block, shared, arguments, packed, packed_bytes); });
}

Result Device::run_kernel(Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                          void** arguments, const void* packed, size_t packed_bytes) {
  if (sticky_ != kSuccess) return sticky_;
  uint64_t threads = product(block), blocks = product(grid);
  bool flat = !block[0] || !block[1] || !block[2] || !grid[0] || !grid[1] || !grid[2];
  if (flat || threads > 1024 || blocks > UINT32_MAX || shared > kMostShared) {
    refuse(kernel.name + ": a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
           " threads and " + std::to_string(shared) + " bytes of shared memory");
    return kInvalidValue;
  }
  if (!program(kernel)) return kNoBinaryForGpu;
  Launch launch;
  launch.image = kernel.module->image.get(), launch.program = kernel.program;
  std::copy_n(grid, 3, launch.grid), std::copy_n(block, 3, launch.block);
  launch.dynamic_shared = shared;
  launch.most_instructions = limit_;
  launch.parameters.resize(kernel.program->parameter_bytes);
  if (arguments) {
    for (size_t k = 0; k < kernel.function->parameters.size(); k++) {
      const ptx::Parameter& one = kernel.function->parameters[k];
      std::memcpy(&launch.parameters[one.offset], arguments[k], one.size);
    }
  } else if (packed) {
    std::memcpy(launch.parameters.data(), packed, std::min(packed_bytes, launch.parameters.size()));
  }
  launch.number = scheduled_;
  launch.heap = &heap_;
  launch.observer = observers_.none() ? nullptr : &observers_;
  schedule_.begin(scheduled_++);
  launches_++;
  Outcome outcome = run(launch, schedule_, memory_);
  instructions_ += outcome.instructions;
  if (log_) say(kernel, grid, block, outcome);
  if (outcome.fault == Fault::None) return kSuccess;
  return fail(result_of(outcome.fault), outcome.message);
}

void Device::say(const Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], const Outcome& outcome) const {
  std::fprintf(stderr, "vgpu: launch %s grid %u,%u,%u block %u,%u,%u: %llu instructions, %llu atomics%s%s\n",
               kernel.name.c_str(), grid[0], grid[1], grid[2], block[0], block[1], block[2],
               static_cast<unsigned long long>(outcome.instructions), static_cast<unsigned long long>(outcome.atomics),
               outcome.message.empty() ? "" : ": ", outcome.message.c_str());
}

}  // namespace vgpu
