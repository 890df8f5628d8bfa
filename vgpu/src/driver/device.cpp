// Prepares and runs launches, and converts their faults to CUDA errors.
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
    case KernelFault::InvalidTextureObject: return kIllegalAddress;
    case KernelFault::Misaligned: return kMisalignedAddress;
    case KernelFault::Assertion: return kAssert;
    case KernelFault::IllegalInstruction: return kIllegalInstruction;
    case KernelFault::Deadlock:
    case KernelFault::NoProgress: return kLaunchTimeout;
    default: return kLaunchFailed;
  }
}

// Returns the number of elements; saturates instead of overflowing 64 bits.
uint64_t volume(const uint32_t size[3]) {
  uint64_t plane = uint64_t(size[0]) * size[1];
  return plane > UINT32_MAX ? plane : plane * size[2];
}

// Returns whether the device supports these grid and block dimensions.
bool is_supported_size(const Configuration& configuration) {
  for (int k = 0; k < 3; k++) {
    if (!configuration.grid[k] || configuration.grid[k] > static_cast<uint32_t>(attribute(kMaxBlocksX + k))) return false;
    if (!configuration.block[k] || configuration.block[k] > static_cast<uint32_t>(attribute(kMaxThreadsX + k))) return false;
  }
  // Block numbers have 32 bits.
  return volume(configuration.block) <= static_cast<uint32_t>(attribute(kMaxThreads)) &&
         volume(configuration.grid) <= UINT32_MAX;
}

// Returns whether the kernel permits this block size (.maxntid and .reqntid).
bool allows_block(const KernelSignature& function, const uint32_t block[3]) {
  const uint32_t* required = function.required_block;
  if (required[0] && !std::equal(required, required + 3, block)) return false;
  return !function.max_threads || volume(block) <= function.max_threads;
}

// Copies arguments to the layout of the parameters; returns false if some are missing.
bool copy_arguments(std::vector<uint8_t>& packed, const std::vector<KernelSignature::Parameter>& parameters,
                    const Arguments& arguments) {
  if (arguments.each && arguments.packed) return false;
  if (arguments.packed)
    return arguments.packed_bytes >= packed.size() && (std::memcpy(packed.data(), arguments.packed, packed.size()), true);
  if (!parameters.empty() && !arguments.each) return false;
  for (size_t k = 0; k < parameters.size(); k++) {
    if (!arguments.each[k]) return false;
    std::memcpy(&packed[parameters[k].offset], arguments.each[k], parameters[k].size);
  }
  return true;
}

std::string format_size(const uint32_t size[3]) {
  return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

}  // namespace

Device& Device::get() {
  static Device* device = new Device;  // never destroyed: libraries may call while they are unloaded
  return *device;
}

Device::Device()
    : memory_(settings().memory_mib << 20, settings().placement),
      schedule_(settings().schedule),
      capability_(settings().capability ? static_cast<int>(settings().capability) : 70),
      capability_fixed_(settings().capability),
      log_(static_cast<int>(settings().log)),
      max_instructions_(settings().max_instructions) {
  load_nvrtc_builtins();
  make_observers();
}

// Creates the file of VGPU_USED, which shows that the program uses the device, and the observers for VGPU_REPORT,
// VGPU_MEMORY_TRACE and VGPU_CHECK (analysis/).  Memcheck needs gaps between shared variables (guards_shared_).
void Device::make_observers() {
  const Settings& options = settings();
  if (!options.used_file.empty()) std::fclose(open_report_file("VGPU_USED", options.used_file));
  std::unique_ptr<LaunchReport> report;
  if (!options.report_file.empty())
    report = std::make_unique<LaunchReport>(open_report_file("VGPU_REPORT", options.report_file));
  if (options.checks.count("order")) {
    stream_order_ = std::make_unique<StreamOrder>();
    memory_.track_writes();
    auto prover = std::make_unique<OrderProver>(*stream_order_, memory_, memory_.total(), report.get());
    prover_ = prover.get();
    if (report) report->add_verdicts(*prover), report_missing_work_to(*report);
    observers_.add(std::move(prover));  // before the report, which includes its verdict
  }
  if (report) observers_.add(std::move(report));
  if (options.checks.count("racecheck")) observers_.add(std::make_unique<RaceDetector>());
  if (options.checks.count("initcheck")) observers_.add(std::make_unique<UninitializedReads>()), memory_.track_writes();
  if (options.checks.count("memcheck")) observers_.add(std::make_unique<Memcheck>()), guards_shared_ = true;
  if (!options.trace_file.empty())
    observers_.add(
        std::make_unique<MemoryTrace>(options.traced_launch, open_report_file("VGPU_MEMORY_TRACE", options.trace_file)));
}

void Device::on_transfer(uint32_t operation, const Transfer& transfer) {
  if (!prover_) return;
  std::lock_guard<std::mutex> guard(lock_);
  prover_->on_transfer(operation, transfer, launches_since_schedule_);
}

void Device::on_allocation(uint32_t operation, uint64_t address) {
  if (!prover_) return;
  std::lock_guard<std::mutex> guard(lock_);
  prover_->on_allocation(operation, address);
}

void Device::on_free(uint32_t operation, const Allocation& allocation) {
  if (!prover_) return;
  std::lock_guard<std::mutex> guard(lock_);
  prover_->on_free(operation, allocation.whole_begin, allocation.end, launches_since_schedule_);
}

void Device::on_host_source(const char* source) {
  if (!prover_) return;
  std::lock_guard<std::mutex> guard(lock_);
  prover_->on_host_source(source, launches_since_schedule_);
}

void Device::set_last_error(const std::string& message) {
  last_error_message_ = message;
  std::fprintf(stderr, "vgpu: %s\n", message.c_str());
}

CudaResult Device::set_sticky_error(CudaResult fault, const std::string& message) {
  return set_last_error(message), sticky_error_ = fault;
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

int Device::max_dynamic_shared(const Kernel& kernel) const {
  if (kernel.max_dynamic_shared >= 0) return kernel.max_dynamic_shared;
  return std::max(0, attribute(kSharedOfBlock) - static_cast<int>(kernel.program->declared_shared()));
}

int Device::occupancy(const Kernel* kernel, int threads, uint64_t shared) {
  const int lanes = attribute(kLanesOfWarp), warp_threads = (threads + lanes - 1) / lanes * lanes;
  uint64_t block_bytes =
      shared + (kernel && kernel->program ? kernel->program->declared_shared() : 0) + attribute(kSharedReserved);
  uint64_t max_blocks = std::min(attribute(kThreadsOfMultiprocessor) / warp_threads, attribute(kBlocksOfMultiprocessor));
  return static_cast<int>(std::min(max_blocks, block_bytes ? attribute(kSharedOfMultiprocessor) / block_bytes : max_blocks));
}

CudaResult Device::check(Kernel& kernel, const Configuration& configuration) {
  auto fail = [&](CudaResult result, const char* reason) {
    set_last_error(kernel.name + ": a launch of " + format_size(configuration.grid) + " blocks of " +
                   format_size(configuration.block) + " threads and " + std::to_string(configuration.shared) +
                   " bytes of shared memory: " + reason);
    return result;
  };
  if (!is_supported_size(configuration)) return fail(kInvalidConfiguration, "the device has no such grid or block");
  if (!decode_kernel(kernel)) return kNoBinaryForGpu;
  if (!allows_block(*kernel.signature, configuration.block))
    return fail(kInvalidValue, "the kernel allows no such block (.maxntid, .reqntid)");
  if (configuration.shared > static_cast<uint64_t>(max_dynamic_shared(kernel)))
    return fail(kInvalidValue, "more than the kernel may have (cuFuncSetAttribute asks for more)");
  const uint64_t max_resident_blocks =
      uint64_t(attribute(kMultiprocessors)) *
      static_cast<uint64_t>(occupancy(&kernel, static_cast<int>(volume(configuration.block)), configuration.shared));
  if (configuration.cooperative && volume(configuration.grid) > max_resident_blocks)
    return fail(kCooperativeLaunchTooLarge, "the blocks of a cooperative launch must be on the device at the same time");
  return kSuccess;
}

// Returns the workspace of grid.sync(), as cooperative_groups.h lays it out: 32-bit words with its size and the barrier.
void* Device::grid_workspace() {
  if (!grid_workspace_) grid_workspace_ = memory_.allocate(kGridWorkspace, true);
  if (!grid_workspace_) throw std::bad_alloc();
  return grid_workspace_;
}

// The caller holds the lock.
CudaResult Device::check_and_pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& configuration,
                                  const Arguments& arguments) {
  if (CudaResult error = sticky_error()) return error;
  if (CudaResult error = check(kernel, configuration)) return error;
  parameters.resize(kernel.signature->parameter_bytes);
  if (copy_arguments(parameters, kernel.signature->parameters, arguments)) return kSuccess;
  return set_last_error(kernel.name + ": a launch without all of its parameters"), kInvalidValue;
}

CudaResult Device::sticky_error() const { return in_host_function() ? kNotPermitted : sticky_error_.load(); }

CudaResult Device::pack(std::vector<uint8_t>& parameters, Kernel& kernel, const Configuration& configuration,
                        const Arguments& arguments) {
  std::lock_guard<std::mutex> guard(lock_);
  return translate_exceptions([&] { return check_and_pack(parameters, kernel, configuration, arguments); });
}

CudaResult Device::prepare(Launch& launch, Kernel& kernel, const Configuration& configuration, const Arguments& arguments) {
  std::lock_guard<std::mutex> guard(lock_);
  return translate_exceptions([&] {
    if (CudaResult error = check_and_pack(launch.parameters, kernel, configuration, arguments)) return error;
    launch.functions = kernel.module->image.get(), launch.program = kernel.program;
    launch.code = kernel.module->image->code_name();
    std::copy_n(configuration.grid, 3, launch.grid), std::copy_n(configuration.block, 3, launch.block);
    launch.dynamic_shared = static_cast<uint32_t>(configuration.shared);
    launch.max_instructions = max_instructions_;
    launch.max_call_depth = static_cast<uint32_t>(stack_bytes_);  // a call uses at least one byte of stack
    launch.index = launches_since_schedule_++;
    launch.multiprocessors = static_cast<uint32_t>(attribute(kMultiprocessors));
    launch.compute_capability = capability_;
    launch.heap = &heap_, launch.textures = &textures_;
    if (configuration.cooperative) launch.grid_workspace = reinterpret_cast<uint64_t>(grid_workspace());
    launch.parameters = kernel.module->image->parameter_block(launch);
    launch.observer = observers_.as_observer();
    return kSuccess;
  });
}

CudaResult Device::run(const Launch& launch) {
  std::lock_guard<std::mutex> guard(lock_);
  return translate_exceptions([&] {
    if (sticky_error_ != kSuccess) return sticky_error_.load();
    if (launch.grid_workspace) std::memset(grid_workspace_, 0, kGridWorkspace);  // no block has arrived at its barrier
    schedule_.begin_launch(launch.index);
    launches_++;
    codes_.insert(launch.code);
    LaunchResult result = run_launch(launch, schedule_, memory_);
    instructions_ += result.instructions;
    if (log_) log_launch(launch, result);
    return result.fault == KernelFault::None ? kSuccess : set_sticky_error(result_of(result.fault), result.message);
  });
}

void Device::log_launch(const Launch& launch, const LaunchResult& result) const {
  std::fprintf(stderr, "vgpu: launch %s grid %s block %s: %llu instructions, %llu atomics%s%s\n", launch.program->name.c_str(),
               format_size(launch.grid).c_str(), format_size(launch.block).c_str(),
               static_cast<unsigned long long>(result.instructions), static_cast<unsigned long long>(result.atomics),
               result.message.empty() ? "" : ": ", result.message.c_str());
}

}  // namespace vgpu
