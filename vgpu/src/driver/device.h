// The one device of this process.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../machine/launch.h"

namespace vgpu {

// CUDA's result codes, as far as they are given here (cuda.h: CUresult; the runtime's are the same numbers).
enum Result : int {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidImage = 200, kInvalidContext = 201,
  kNoBinaryForGpu = 209, kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700, kLaunchOutOfResources = 701,
  kMisalignedAddress = 716, kLaunchFailed = 719, kNotSupported = 801
};

struct Module {
  std::unique_ptr<Image> image;
  std::string refused;  // why there is none
};

struct Kernel {
  Module* module;
  const ptx::Function* function;
  const Program* program = nullptr;
  std::string refused;
};

class Device {
 public:
  static Device& get();

  Memory& memory() { return memory_; }
  int capability() const { return capability_; }  // 70 for 7.0
  int driver_version() const { return capability_ >= 90 ? 12080 : 10000; }  // what its frameworks were built for
  std::mutex& lock() { return lock_; }

  // Under the lock.  nullptr, with the reason in last_fault(): the kernel holds what this device does not know.
  const Program* program(Kernel& kernel);
  void refuse(const std::string& why);
  void set_schedule(const Schedule& schedule) { schedule_ = schedule, scheduled_ = 0; }

  // Under the lock.  A kernel is decoded at its first launch; arguments as cuLaunchKernel takes them.
  Result launch(Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, void** arguments,
                const void* packed, size_t packed_bytes);
  Result sticky() const { return sticky_; }  // after a fault nothing runs any more, as on a card
  float event_milliseconds() { return schedule_.event_milliseconds(); }
  uint64_t launches() const { return launches_; }
  uint64_t instructions() const { return instructions_; }
  const std::string& last_fault() const { return last_fault_; }

 private:
  Device();
  void say(const Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], const Outcome& outcome) const;

  std::mutex lock_;
  Memory memory_;
  Schedule schedule_;
  Observers observers_;
  int capability_;
  int log_;
  uint64_t limit_;
  uint64_t launches_ = 0, instructions_ = 0;
  uint64_t scheduled_ = 0;  // launches under this schedule
  Result sticky_ = kSuccess;
  std::string last_fault_;
};

}  // namespace vgpu
