// The one device of this process.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "../error.h"
#include "../machine/heap.h"
#include "../machine/launch.h"

namespace vgpu {

// CUDA's result codes, as far as they are given here (cuda.h: CUresult; the runtime's are the same numbers).
enum Result : int {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidImage = 200, kInvalidContext = 201,
  kNoBinaryForGpu = 209, kInvalidPtx = 218, kFileNotFound = 301, kInvalidHandle = 400, kNotFound = 500,
  kIllegalAddress = 700, kLaunchOutOfResources = 701, kMisalignedAddress = 716, kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720, kNotSupported = 801, kUnknown = 999
};

struct Module {
  std::unique_ptr<Image> image;
  std::string refused;  // why there is none: its kernels are refused by their names
};

struct Kernel {
  Module* module;
  const ptx::Function* function;  // nullptr where there is no PTX
  std::string name;
  const Program* program = nullptr;
  std::string refused;
};

class Device {
 public:
  static Device& get();

  Memory& memory() { return memory_; }
  Heap& heap() { return heap_; }
  // 70 for 7.0; once told it stays.
  int capability() { return asked_ = true, capability_; }
  // A program brings PTX for this architecture: the device is the newest that it was built for.
  void offer(int arch) {
    if (!asked_ && arch > capability_) capability_ = arch;
  }
  int driver_version() const { return 12080; }  // as on a card: newer than any runtime that asks
  std::mutex& lock() { return lock_; }

  // Under the lock.  nullptr, with the reason in last_fault(): the kernel holds what this device does not know.
  const Program* program(Kernel& kernel);
  void refuse(const std::string& why);
  Result fail(Result fault, const std::string& why);  // for good
  void stood_in(const char* call);
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
  Result run_kernel(Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, void** arguments,
                    const void* packed, size_t packed_bytes);
  Device();
  void say(const Kernel& kernel, const uint32_t grid[3], const uint32_t block[3], const Outcome& outcome) const;

  std::mutex lock_;
  Memory memory_;
  Heap heap_{memory_};
  Schedule schedule_;
  Observers observers_;
  int capability_;
  bool asked_;
  int log_;
  uint64_t limit_;
  uint64_t launches_ = 0, instructions_ = 0;
  uint64_t scheduled_ = 0;  // launches under this schedule
  Result sticky_ = kSuccess;
  std::string last_fault_;
};

// The result of f(), in words of CUDA where it throws: no exception may leave a function that C calls.
template <class F>
Result guarded(F f) {
  Device& device = Device::get();
  try {
    return f();
  } catch (const Unsupported& error) {
    device.refuse(error.what());
    return kNoBinaryForGpu;
  } catch (const OutOfResources& error) {
    device.refuse(error.what());
    return kLaunchOutOfResources;
  } catch (const std::bad_alloc&) {
    device.refuse("this process has no memory left");
    return kOutOfMemory;
  } catch (const std::exception& error) {
    device.refuse(error.what());
    return kUnknown;
  }
}

}  // namespace vgpu
