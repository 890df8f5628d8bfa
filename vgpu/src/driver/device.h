// The one device of this process.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "analysis/order/prover.h"
#include "core/device_heap.h"
#include "core/error.h"
#include "core/launch.h"
#include "core/texture.h"
#include "image/code_module.h"
#include "image/fatbin.h"
#include "ptx/invalid_ptx.h"

namespace vgpu {

// CUDA's result codes, as far as they are given here (cuda.h: CUresult; the runtime's are the same numbers).
enum CudaResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidConfiguration = 9,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kUnsupportedLimit = 215,
  kInvalidPtx = 218,
  kFileNotFound = 301,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999
};

constexpr size_t kDefaultStack = 1024;  // bytes of a thread, of which a program may want more

struct Kernel;
struct CudaModule {
  std::unique_ptr<CodeModule> image;
  std::string unsupported_reason;  // why there is none: its kernels are refused by their names
  std::map<std::string, Kernel*> kernels;  // those that were asked for
  const void* owner = nullptr;             // the context that it goes with; none of what a runtime has registered
};

struct Kernel {
  CudaModule* module;
  const KernelSignature* signature;  // nullptr where there is no code for this device
  std::string name;
  std::string unsupported_reason;
  const DecodedFunction* program = nullptr;
  int dynamic_shared = -1;  // the most bytes that a launch may have, where somebody has set that
};

// How a kernel is to be launched.
struct Configuration {
  uint32_t grid[3], block[3];
  uint64_t shared = 0;  // dynamic shared memory, in bytes
  bool cooperative = false;
};
// Its parameters: a pointer to each, or all of them as the kernel lays them out.
struct Arguments {
  void** each = nullptr;
  const void* packed = nullptr;
  size_t packed_bytes = 0;
};

class Device {
 public:
  static Device& get();

  DeviceMemory& memory() { return memory_; }
  DeviceHeap& heap() { return heap_; }
  TextureObjects& textures() { return textures_; }
  // 70 for 7.0; once told it stays.
  int capability() { return capability_fixed_ = true, capability_; }
  int architecture() const { return capability_; }  // as of now
  bool guards_shared() const { return guards_shared_; }
  // A program brings code for this architecture: the device is the newest that it was built for.
  void register_arch(int arch) {
    if (!capability_fixed_ && arch > capability_) capability_ = arch;
  }
  int driver_version() const { return 13000; }  // as on a card: newer than any runtime that asks
  std::mutex& lock() { return lock_; }
  size_t stack_bytes() const { return stack_bytes_; }
  void set_stack_bytes(size_t bytes) { stack_bytes_ = bytes; }

  // Under the lock.  nullptr, with the reason in last_error_message(): the kernel holds what this device does not know.
  const DecodedFunction* decode_kernel(Kernel& kernel);
  void set_last_error(const std::string& why);
  CudaResult set_sticky_error(CudaResult fault, const std::string& why);  // for good
  void record_fallback(const char* call);
  // Of VGPU_CHECK=order, without the lock: copies and fills, just before they are done, and what a host's decision may depend
  // on.  Without the check there is no order, and they do nothing.
  StreamOrder* stream_order() { return stream_order_.get(); }
  void on_transfer(uint32_t operation, const Transfer& transfer);
  void on_host_source(const char* what);
  void set_schedule(const Schedule& schedule) { schedule_ = schedule, launches_since_schedule_ = 0; }

  // A launch, as far as it can be told before it runs: checked, with a copy of its parameters and its number.  A kernel is
  // decoded at its first one.  kInvalidConfiguration: no grid or block that the device has.
  CudaResult prepare(Launch& launch, Kernel& kernel, const Configuration& how, const Arguments& given);
  CudaResult run(const Launch& launch);
  // The parameters of a launch that is to be made later, as the kernel lays them out; checked as by prepare().
  CudaResult pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& how, const Arguments& given);
  int most_dynamic_shared(const Kernel& kernel) const;   // bytes that a launch may have; its program is there
  int occupancy(const Kernel* kernel, int threads, uint64_t shared);  // blocks of a multiprocessor
  CudaResult sticky_error() const;  // after a fault nothing runs any more, as on a card; nor does a host function's call
  float event_milliseconds() { return schedule_.event_milliseconds(); }
  uint64_t launches() const { return launches_; }
  const std::set<std::string>& codes() const { return codes_; }  // names of Launch::code of what was launched; under the lock
  uint64_t instructions() const { return instructions_; }
  const std::string& last_error_message() const { return last_error_message_; }

 private:
  Device();
  CudaResult check(Kernel& kernel, const Configuration& how);
  void* grid_workspace();
  CudaResult take(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& how, const Arguments& given);
  void make_observers();
  void log_launch(const Launch& launch, const LaunchResult& outcome) const;

  std::mutex lock_;
  DeviceMemory memory_;
  DeviceHeap heap_{memory_};
  TextureObjects textures_;
  Schedule schedule_;
  ObserverList observers_;
  std::unique_ptr<StreamOrder> stream_order_;
  OrderProver* prover_ = nullptr;  // one of the observers
  int capability_;
  bool capability_fixed_;
  bool guards_shared_ = false;
  void* grid_workspace_ = nullptr;  // of cooperative launches
  int log_;
  uint64_t max_instructions_;
  uint64_t launches_ = 0, instructions_ = 0;
  std::set<std::string> codes_;
  uint64_t launches_since_schedule_ = 0;  // launches under this schedule
  std::atomic<CudaResult> sticky_error_{kSuccess};
  size_t stack_bytes_ = kDefaultStack;
  std::string last_error_message_;
};

// The result of f(), in words of CUDA where it throws: no exception may leave a function that C calls.
template <class F>
CudaResult translate_exceptions(F f) {
  Device& device = Device::get();
  try {
    return f();
  } catch (const InvalidImage& error) {
    device.set_last_error(error.what());
    return kInvalidImage;
  } catch (const InvalidPtx& error) {
    device.set_last_error(error.what());
    return kInvalidPtx;
  } catch (const Unsupported& error) {
    device.set_last_error(error.what());
    return kNoBinaryForGpu;
  } catch (const OutOfResources& error) {
    device.set_last_error(error.what());
    return kLaunchOutOfResources;
  } catch (const std::bad_alloc&) {
    device.set_last_error("this process has no memory left");
    return kOutOfMemory;
  } catch (const std::exception& error) {
    device.set_last_error(error.what());
    return kUnknown;
  }
}

}  // namespace vgpu
