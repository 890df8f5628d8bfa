// Allocates a block's shared memory and the kernel's parameters, and binds memory to call frames.
#include "block_memory.h"

#include <algorithm>
#include <cstring>

namespace vgpu {
namespace {

constexpr uint32_t kAlign = 64;

uint32_t align_up(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

BlockMemory::BlockMemory(const Launch& launch, size_t block_bytes)
    : dynamic_offset_(align_up(launch.program->shared_bytes, launch.program->shared_align)),
      dynamic_bytes_(launch.dynamic_shared),
      shared_align_(std::max(launch.program->shared_align, kAlign)),
      parameter_bytes_(static_cast<uint32_t>(launch.parameters.size())) {
  reservation_.set(block_bytes + shared_bytes() + parameter_bytes_);
  shared_.resize(shared_bytes() + shared_align_);
  parameters_.resize(parameter_bytes_ + kAlign);
  std::copy(launch.parameters.begin(), launch.parameters.end(), align_within(parameters_, kAlign));
}

void BlockMemory::clear() { std::fill_n(shared(), shared_bytes(), 0); }

// Copies words of the parameters or of variables to the frame, once for each lane, where instructions read them like registers.
void BlockMemory::write_launch_constants(CallFrame& frame) {
  if (frame.has_launch_constants) return;
  frame.has_launch_constants = true;
  for (const DecodedFunction::LaunchConstant& constant : frame.program->launch_constants) {
    uint32_t word;
    std::memcpy(&word, constant.variable ? constant.variable : align_within(parameters_, kAlign) + constant.parameter,
                sizeof word);
    std::fill_n(reinterpret_cast<uint32_t*>(frame.registers_base() + constant.to), kWarpSize, word);
  }
}

void BlockMemory::bind(WarpContext& context, CallFrame* frame) {
  const DecodedFunction& program = *frame->program;
  context.frame = frame->registers_base();
  context.has_lane_parameters = frame->caller != nullptr;
  context.parameters = context.has_lane_parameters ? frame->parameters.data() : align_within(parameters_, kAlign);
  context.parameter_bytes = context.has_lane_parameters ? program.parameter_bytes : parameter_bytes_;
  context.local = frame->local_base(), context.local_bytes = program.local_bytes;
  context.scratch = frame->scratch.data(), context.scratch_bytes = program.scratch_bytes;
  context.per_lane_memory.clear();
  for (CallFrame* caller_frame = frame; caller_frame; caller_frame = caller_frame->caller) {
    if (caller_frame->program->local_bytes)
      context.per_lane_memory.push_back({caller_frame->local_base(), caller_frame->program->local_bytes, true});
    if (caller_frame->program->scratch_bytes)
      context.per_lane_memory.push_back({caller_frame->scratch.data(), caller_frame->program->scratch_bytes, false});
    if (caller_frame->caller)
      context.per_lane_memory.push_back({caller_frame->parameters.data(), caller_frame->program->parameter_bytes, false});
  }
}

}  // namespace vgpu
