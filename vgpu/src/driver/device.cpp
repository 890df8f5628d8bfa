// Launches kernels on the device, and turns their faults into CUDA errors.
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "analysis/initcheck.h"
#include "analysis/launch_report.h"
#include "analysis/memcheck.h"
#include "analysis/memory_trace.h"
#include "analysis/racecheck.h"
#include "api.h"
#include "core/error.h"
#include "run_time_compiler.h"
#include "settings.h"
#include "unsupported_log.h"

namespace vgpu {
namespace {

constexpr size_t kGridWorkspace = 64;  // bytes

std::FILE* open_report_file(const char* variable, const std::string& name) {
  std::FILE* file = std::fopen(name.c_str(), "ae");
  if (file) return file;
  std::fprintf(stderr, "vgpu: %s: %s cannot be written\n", variable, name.c_str());
  std::exit(2);
}

CudaResult result_of(KernelFault fault) {
  switch (fault) {
    case KernelFault::None: return kSuccess;
    case KernelFault::OutOfBounds:
    case KernelFault::ReadOnly:
    case KernelFault::NoObject: return kIllegalAddress;
    case KernelFault::Misaligned: return kMisalignedAddress;
    case KernelFault::Assertion: return kAssert;
    case KernelFault::IllegalInstruction: return kIllegalInstruction;
    case KernelFault::Deadlock:
    case KernelFault::NoProgress: return kLaunchTimeout;
    default: return kLaunchFailed;
  }
}

// Held to 64 bits, where it could go round.
uint64_t product(const uint32_t size[3]) {
  uint64_t plane = uint64_t(size[0]) * size[1];
  return plane > UINT32_MAX ? plane : plane * size[2];
}

// The dimensions alone: each must be there, and none beyond what the device has.
bool fits(const Configuration& how) {
  for (int k = 0; k < 3; k++) {
    if (!how.grid[k] || how.grid[k] > static_cast<uint32_t>(attribute(kMaxBlocksX + k))) return false;
    if (!how.block[k] || how.block[k] > static_cast<uint32_t>(attribute(kMaxThreadsX + k))) return false;
  }
  // All blocks are numbered by 32 bits here.
  return product(how.block) <= static_cast<uint32_t>(attribute(kMaxThreads)) && product(how.grid) <= UINT32_MAX;
}

// What the kernel's own text allows: .maxntid and .reqntid.
bool allowed(const KernelSignature& function, const uint32_t block[3]) {
  const uint32_t* exact = function.required_block;
  if (exact[0] && !std::equal(exact, exact + 3, block)) return false;
  return !function.most_threads || product(block) <= function.most_threads;
}

// False: some are missing.
bool copy_arguments(std::vector<uint8_t>& to, const std::vector<KernelSignature::Parameter>& parameters,
                    const Arguments& given) {
  if (given.each && given.packed) return false;
  if (given.packed) return given.packed_bytes >= to.size() && (std::memcpy(to.data(), given.packed, to.size()), true);
  if (!parameters.empty() && !given.each) return false;
  for (size_t k = 0; k < parameters.size(); k++) {
    if (!given.each[k]) return false;
    std::memcpy(&to[parameters[k].offset], given.each[k], parameters[k].size);
  }
  return true;
}

std::string dimensions(const uint32_t of[3]) {
  return std::to_string(of[0]) + "," + std::to_string(of[1]) + "," + std::to_string(of[2]);
}

}  // namespace

Device& Device::get() {
  static Device* device = new Device;  // never destroyed: libraries call while they are unloaded
  return *device;
}

Device::Device()
    : memory_(settings().memory_mib << 20, settings().placement),
      schedule_(settings().schedule),
      capability_(settings().capability ? static_cast<int>(settings().capability) : 70),
      capability_fixed_(settings().capability),
      log_(static_cast<int>(settings().log)),
      max_instructions_(settings().limit) {
  load_nvrtc_builtins();
  make_observers();
}

// VGPU_USED=FILE: it is there once a program has begun to use the device.
// VGPU_REPORT=FILE, VGPU_MEMORY_TRACE=LAUNCH:FILE, VGPU_CHECK: see the folder analysis/.
void Device::make_observers() {
  const Settings& asked = settings();
  if (!asked.used.empty()) std::fclose(open_report_file("VGPU_USED", asked.used));
  std::unique_ptr<LaunchReport> report;
  if (!asked.report.empty()) report = std::make_unique<LaunchReport>(open_report_file("VGPU_REPORT", asked.report));
  if (asked.checks.count("order")) {
    stream_order_ = std::make_unique<StreamOrder>();
    memory_.track_writes();
    auto prover = std::make_unique<OrderProver>(*stream_order_, memory_, memory_.total(), report.get());
    prover_ = prover.get();
    if (report) report->add_verdicts(*prover);
    observers_.add(std::move(prover));  // before the report, which asks it
  }
  if (report) observers_.add(std::move(report));
  if (asked.checks.count("racecheck")) observers_.add(std::make_unique<RaceDetector>());
  if (asked.checks.count("initcheck")) observers_.add(std::make_unique<UninitializedReads>()), memory_.track_writes();
  if (asked.checks.count("memcheck")) observers_.add(std::make_unique<Memcheck>()), guards_shared_ = true;
  if (!asked.trace.empty())
    observers_.add(std::make_unique<MemoryTrace>(asked.traced, open_report_file("VGPU_MEMORY_TRACE", asked.trace)));
}

void Device::on_transfer(uint32_t operation, const Transfer& transfer) {
  if (!prover_) return;
  std::lock_guard<std::mutex> hold(lock_);
  prover_->on_transfer(operation, transfer, launches_since_schedule_);
}

void Device::on_host_source(const char* what) {
  if (!prover_) return;
  std::lock_guard<std::mutex> hold(lock_);
  prover_->on_host_source(what, launches_since_schedule_);
}

void Device::set_last_error(const std::string& why) {
  last_error_message_ = why;
  std::fprintf(stderr, "vgpu: %s\n", why.c_str());
}

CudaResult Device::set_sticky_error(CudaResult fault, const std::string& why) {
  return set_last_error(why), sticky_error_ = fault;
}

void Device::record_fallback(const char* call) {
  note_fallback(call);
  observers_.on_fallback(call, launches_since_schedule_);
}

const DecodedFunction* Device::decode_kernel(Kernel& kernel) {
  if (!kernel.program && kernel.unsupported_reason.empty()) {
    try {
      kernel.program = kernel.module->image->program(kernel.name);
    } catch (const std::exception& error) { kernel.unsupported_reason = error.what(); }
  }
  if (!kernel.program) {
    last_error_message_ = kernel.name + ": " + kernel.unsupported_reason;
    note_unsupported(last_error_message_);
  }
  return kernel.program;
}

int Device::most_dynamic_shared(const Kernel& kernel) const {
  if (kernel.dynamic_shared >= 0) return kernel.dynamic_shared;
  return std::max(0, attribute(kSharedOfBlock) - static_cast<int>(kernel.program->declared_shared()));
}

int Device::occupancy(const Kernel* kernel, int threads, uint64_t shared) {
  const int lanes = attribute(kLanesOfWarp), whole = (threads + lanes - 1) / lanes * lanes;
  uint64_t taken = shared + (kernel && kernel->program ? kernel->program->declared_shared() : 0) + attribute(kSharedReserved);
  uint64_t most = std::min(attribute(kThreadsOfMultiprocessor) / whole, attribute(kBlocksOfMultiprocessor));
  return static_cast<int>(std::min(most, taken ? attribute(kSharedOfMultiprocessor) / taken : most));
}

CudaResult Device::check(Kernel& kernel, const Configuration& how) {
  auto refused = [&](CudaResult why, const char* words) {
    set_last_error(kernel.name + ": a launch of " + dimensions(how.grid) + " blocks of " + dimensions(how.block) +
                   " threads and " + std::to_string(how.shared) + " bytes of shared memory: " + words);
    return why;
  };
  if (!fits(how)) return refused(kInvalidConfiguration, "the device has no such grid or block");
  if (!decode_kernel(kernel)) return kNoBinaryForGpu;
  if (!allowed(*kernel.signature, how.block))
    return refused(kInvalidValue, "the kernel allows no such block (.maxntid, .reqntid)");
  if (how.shared > static_cast<uint64_t>(most_dynamic_shared(kernel)))
    return refused(kInvalidValue, "more than the kernel may have (cuFuncSetAttribute asks for more)");
  const uint64_t room = uint64_t(attribute(kMultiprocessors)) *
                        static_cast<uint64_t>(occupancy(&kernel, static_cast<int>(product(how.block)), how.shared));
  if (how.cooperative && product(how.grid) > room)
    return refused(kCooperativeLaunchTooLarge, "the blocks of a cooperative launch must be on the device at the same time");
  return kSuccess;
}

// In words of 32 bits: its size, then the barrier at which the blocks meet, as cooperative_groups.h lays it out.
void* Device::grid_workspace() {
  if (!grid_workspace_) grid_workspace_ = memory_.allocate(kGridWorkspace, true);
  if (!grid_workspace_) throw std::bad_alloc();
  return grid_workspace_;
}

// Under the lock.
CudaResult Device::take(std::vector<uint8_t>& to, Kernel& kernel, const Configuration& how, const Arguments& given) {
  if (CudaResult broken = sticky_error()) return broken;
  if (CudaResult wrong = check(kernel, how)) return wrong;
  to.resize(kernel.signature->parameter_bytes);
  if (copy_arguments(to, kernel.signature->parameters, given)) return kSuccess;
  return set_last_error(kernel.name + ": a launch without all of its parameters"), kInvalidValue;
}

CudaResult Device::sticky_error() const { return in_host_function() ? kNotPermitted : sticky_error_.load(); }

CudaResult Device::pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& how, const Arguments& given) {
  std::lock_guard<std::mutex> hold(lock_);
  return translate_exceptions([&] { return take(parameters, kernel, how, given); });
}

CudaResult Device::prepare(Launch& launch, Kernel& kernel, const Configuration& how, const Arguments& given) {
  std::lock_guard<std::mutex> hold(lock_);
  return translate_exceptions([&] {
    if (CudaResult wrong = take(launch.parameters, kernel, how, given)) return wrong;
    launch.functions = kernel.module->image.get(), launch.program = kernel.program;
    launch.code = kernel.module->image->code_name();
    launch.parameters =
        kernel.module->image->parameter_block(*kernel.program, std::move(launch.parameters), how.grid, how.block);
    std::copy_n(how.grid, 3, launch.grid), std::copy_n(how.block, 3, launch.block);
    launch.dynamic_shared = static_cast<uint32_t>(how.shared);
    launch.max_instructions = max_instructions_;
    launch.max_call_depth = static_cast<uint32_t>(stack_bytes_);  // on a card a call takes more than a byte
    launch.index = launches_since_schedule_++;
    launch.multiprocessors = static_cast<uint32_t>(attribute(kMultiprocessors));
    launch.compute_capability = capability_;
    launch.heap = &heap_, launch.textures = &textures_;
    if (how.cooperative) launch.grid_workspace = reinterpret_cast<uint64_t>(grid_workspace());
    launch.observer = observers_.empty() ? nullptr : &observers_;
    return kSuccess;
  });
}

CudaResult Device::run(const Launch& launch) {
  std::lock_guard<std::mutex> hold(lock_);
  return translate_exceptions([&] {
    if (sticky_error_ != kSuccess) return sticky_error_.load();
    if (launch.grid_workspace) std::memset(grid_workspace_, 0, kGridWorkspace);  // nobody has come to its barrier
    schedule_.begin_launch(launch.index);
    launches_++;
    codes_.insert(launch.code);
    LaunchResult outcome = run_launch(launch, schedule_, memory_);
    instructions_ += outcome.instructions;
    if (log_) log_launch(launch, outcome);
    return outcome.fault == KernelFault::None ? kSuccess : set_sticky_error(result_of(outcome.fault), outcome.message);
  });
}

void Device::log_launch(const Launch& launch, const LaunchResult& outcome) const {
  std::fprintf(stderr, "vgpu: launch %s grid %s block %s: %llu instructions, %llu atomics%s%s\n", launch.program->name.c_str(),
               dimensions(launch.grid).c_str(), dimensions(launch.block).c_str(),
               static_cast<unsigned long long>(outcome.instructions), static_cast<unsigned long long>(outcome.atomics),
               outcome.message.empty() ? "" : ": ", outcome.message.c_str());
}

}  // namespace vgpu
