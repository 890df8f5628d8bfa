// Allocates a block's shared memory and binds it, and the kernel's parameters, to a warp.
#include "block_memory.h"

#include <algorithm>
#include <cstring>

namespace vgpu {
namespace {

constexpr uint32_t kAlign = 64;

uint32_t align_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

BlockMemory::BlockMemory(const Launch& launch, size_t block_bytes)
    : dynamic_offset_(align_up(launch.program->shared_bytes, launch.program->shared_align)),
      dynamic_bytes_(launch.dynamic_shared),
      shared_align_(std::max(launch.program->shared_align, kAlign)),
      parameter_bytes_(static_cast<uint32_t>(launch.parameters.size())) {
  charge_.set(block_bytes + shared_bytes() + parameter_bytes_);
  shared_.resize(shared_bytes() + shared_align_);
  parameters_.resize(parameter_bytes_ + kAlign);
  std::copy(launch.parameters.begin(), launch.parameters.end(), align_within(parameters_, kAlign));
}

void BlockMemory::clear() { std::fill_n(shared(), shared_bytes(), 0); }

void BlockMemory::write_launch_constants(CallFrame& frame) {
  if (frame.has_launch_constants) return;
  frame.has_launch_constants = true;
  for (const DecodedFunction::LaunchConstant& one : frame.program->launch_constants) {
    uint32_t word;
    std::memcpy(&word, one.variable ? one.variable : align_within(parameters_, kAlign) + one.parameter, sizeof word);
    std::fill_n(reinterpret_cast<uint32_t*>(frame.registers_base() + one.to), kWarpSize, word);
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
  for (CallFrame* one = frame; one; one = one->caller) {
    if (one->program->local_bytes) context.per_lane_memory.push_back({one->local_base(), one->program->local_bytes});
    if (one->program->scratch_bytes) context.per_lane_memory.push_back({one->scratch.data(), one->program->scratch_bytes});
    if (one->caller) context.per_lane_memory.push_back({one->parameters.data(), one->program->parameter_bytes});
  }
}

}  // namespace vgpu
