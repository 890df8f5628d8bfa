// The device of this process, with its memory, schedule and observers, and the modules and kernels that it runs.
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

// CUDA's result codes that this driver returns (cuda.h: CUresult; the runtime uses the same numbers).
enum CudaResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidConfiguration = 9,
  kInvalidFunction = 98,  // only the runtime has it
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kUnsupportedLimit = 215,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
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

constexpr size_t kDefaultStack = 1024;  // bytes for each thread (CU_LIMIT_STACK_SIZE)

struct Kernel;
struct CudaModule {
  std::unique_ptr<CodeModule> image;
  std::string unsupported_reason;          // why `image` is null; launches of its kernels fail with it
  std::map<std::string, Kernel*> kernels;  // those that the program has requested
  const void* owner = nullptr;             // the context with which it is unloaded; nullptr if the runtime has loaded it
};

struct Kernel {
  CudaModule* module;
  const KernelSignature* signature;  // nullptr if there is no code for this device
  std::string name;
  std::string unsupported_reason;
  const DecodedFunction* program = nullptr;
  int max_dynamic_shared = -1;  // limit in bytes that the program has set; -1: none
};

// The configuration of a launch.
struct Configuration {
  uint32_t grid[3], block[3];
  uint64_t shared = 0;  // dynamic shared memory, in bytes
  bool cooperative = false;
};
// The arguments of a launch: a pointer to each, or all of them in the layout of the kernel's parameters.
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
  // The compute capability, 70 for 7.0.  It does not change after the first call.
  int capability() { return capability_fixed_ = true, capability_; }
  int architecture() const { return capability_; }  // the current capability, which may still increase
  bool guards_shared() const { return guards_shared_; }  // whether gaps separate shared variables (VGPU_CHECK=memcheck)
  // Registers that the program has code for this architecture.  The device has the newest capability registered.
  void register_arch(int arch) {
    if (!capability_fixed_ && arch > capability_) capability_ = arch;
  }
  int driver_version() const { return 13000; }  // newer than any runtime, as on hardware
  std::mutex& lock() { return lock_; }
  size_t stack_bytes() const { return stack_bytes_; }
  void set_stack_bytes(size_t bytes) { stack_bytes_ = bytes; }

  // The caller holds the lock.  Returns nullptr, with the reason in last_error_message(), if the kernel is not supported.
  const DecodedFunction* decode_kernel(Kernel& kernel);
  void set_last_error(const std::string& message);
  CudaResult set_sticky_error(CudaResult fault, const std::string& message);  // cannot be cleared
  void record_fallback(const char* call);  // notes a vendor library's call that is computed on the CPU
  // For VGPU_CHECK=order, called without the lock: before copies and fills, and when the host reads a value on which its decisions
  // may depend.  Without that check, stream_order() is nullptr and the others do nothing.
  StreamOrder* stream_order() { return stream_order_.get(); }
  void on_transfer(uint32_t operation, const Transfer& transfer);
  void on_allocation(uint32_t operation, uint64_t address);  // by a stream
  void on_free(uint32_t operation, const Allocation& allocation);  // likewise
  void on_host_source(const char* source);
  void set_schedule(const Schedule& schedule) { schedule_ = schedule, launches_since_schedule_ = 0; }

  // Checks a launch, copies its arguments and assigns its number.  A kernel is decoded at its first launch.
  // kInvalidConfiguration: the device does not support this grid or block.
  CudaResult prepare(Launch& launch, Kernel& kernel, const Configuration& configuration, const Arguments& arguments);
  CudaResult run(const Launch& launch);
  // Checks a launch as prepare() does, and packs its arguments in the layout of the kernel's parameters.
  CudaResult pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& configuration,
                  const Arguments& arguments);
  int max_dynamic_shared(const Kernel& kernel) const;  // in bytes; the kernel must be decoded
  int occupancy(const Kernel* kernel, int threads, uint64_t shared);  // blocks per multiprocessor
  CudaResult sticky_error() const;  // the fault after which all calls fail; kNotPermitted in a host function
  // Returns the time to report between two events, which the schedule chooses.
  float event_milliseconds() { return schedule_.event_milliseconds(); }
  uint64_t launches() const { return launches_; }
  const std::set<std::string>& codes() const { return codes_; }  // Launch::code of all launches; the caller holds the lock
  uint64_t instructions() const { return instructions_; }
  const std::string& last_error_message() const { return last_error_message_; }

 private:
  Device();
  CudaResult check(Kernel& kernel, const Configuration& configuration);
  void* grid_workspace();
  CudaResult check_and_pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& configuration,
                            const Arguments& arguments);
  void make_observers();
  void log_launch(const Launch& launch, const LaunchResult& result) const;

  std::mutex lock_;
  DeviceMemory memory_;
  DeviceHeap heap_{memory_};
  TextureObjects textures_;
  Schedule schedule_;
  ObserverList observers_;
  std::unique_ptr<StreamOrder> stream_order_;
  OrderProver* prover_ = nullptr;  // one of the observers; nullptr without VGPU_CHECK=order
  int capability_;
  bool capability_fixed_;
  bool guards_shared_ = false;
  void* grid_workspace_ = nullptr;  // for grid.sync() of cooperative launches
  int log_;
  uint64_t max_instructions_;
  uint64_t launches_ = 0, instructions_ = 0;
  std::set<std::string> codes_;
  uint64_t launches_since_schedule_ = 0;  // launches under this schedule
  std::atomic<CudaResult> sticky_error_{kSuccess};
  size_t stack_bytes_ = kDefaultStack;
  std::string last_error_message_;
};

// Returns f(), or the CUDA result for an exception of it: no exception may leave a C function.
template <class F>
CudaResult translate_exceptions(F f) {
  Device& device = Device::get();
  try {
    return f();
  } catch (const InvalidImage& error) {
    device.set_last_error(error.what());
    return kInvalidImage;
  } catch (const UnsupportedPtxVersion& error) {
    device.set_last_error(error.what());
    return kUnsupportedPtxVersion;
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
