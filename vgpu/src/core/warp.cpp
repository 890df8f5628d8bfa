// Call frames and convergence groups of a warp.
#include "warp.h"

#include <algorithm>

namespace vgpu {
namespace {

// Whether `group` should run before `other`, so that they can reconverge: it is in a deeper call or at a lower program counter.
bool is_behind(const ConvergenceGroup& group, const ConvergenceGroup& other) {
  if (group.frame != other.frame && group.frame->depth != other.frame->depth) return group.frame->depth > other.frame->depth;
  return group.pc < other.pc;
}

}  // namespace

void CallFrame::reset(const DecodedFunction& function) {
  if (program != &function) {
    program = &function, has_launch_constants = false;
    reservation.set(function.register_bytes + function.constants.size() +
                    uint64_t(kWarpSize) * (function.local_bytes + function.scratch_bytes + function.parameter_bytes));
    registers.assign(function.register_bytes + function.constants.size() + 64, 0);
    std::copy(function.constants.begin(), function.constants.end(), registers_base() + function.register_bytes);
    local.assign(size_t(function.local_bytes) * kWarpSize + function.local_align, 0);
    scratch.assign(size_t(function.scratch_bytes) * kWarpSize, 0);
  } else {
    std::fill_n(registers_base(), function.register_bytes, 0);
    std::fill(local.begin(), local.end(), 0);
  }
  caller = nullptr, site = nullptr, depth = 0, ref_count = 0;
}

void Warp::reset(const DecodedFunction& kernel, uint32_t lanes) {
  convergence.reset(lanes == kWarpSize ? kFullMask : (1u << lanes) - 1);
  groups.clear();
  CallFrame* frame = push_frame(kernel);
  frame->ref_count = 1;
  std::copy(special_registers.begin(), special_registers.end(), frame->registers_base());
  groups.push_back({frame, 0, convergence.live});
}

CallFrame* Warp::push_frame(const DecodedFunction& program) {
  auto free_frame = std::find_if(free_frames.begin(), free_frames.end(),
                                 [&](const auto& candidate) { return candidate->program == &program; });
  std::unique_ptr<CallFrame> frame;
  if (free_frame != free_frames.end()) {
    frame = std::move(*free_frame);
    free_frames.erase(free_frame);
  } else {
    frame = std::make_unique<CallFrame>();
  }
  frame->reset(program);
  frames.push_back(std::move(frame));
  return frames.back().get();
}

void Warp::release_frame(CallFrame* frame) {
  while (frame && --frame->ref_count == 0) {
    CallFrame* caller = frame->caller;
    auto owner = std::find_if(frames.begin(), frames.end(), [&](const auto& candidate) { return candidate.get() == frame; });
    free_frames.push_back(std::move(*owner));
    frames.erase(owner);
    frame = caller;
  }
}

bool Warp::is_runnable() const {
  return std::any_of(groups.begin(), groups.end(), [](const ConvergenceGroup& g) { return g.state == GroupState::Ready; });
}

void Warp::diverge(uint32_t group, uint32_t mask, uint32_t pc) {
  convergence.diverge(mask);
  split(group, mask, pc);
}

void Warp::split(uint32_t group, uint32_t mask, uint32_t pc) {
  ConvergenceGroup new_group = groups[group];
  new_group.mask = mask, new_group.pc = pc, new_group.state = GroupState::Ready,
  new_group.yielded = new_group.preempted = false;
  new_group.frame->ref_count++;
  groups[group].mask &= ~mask;
  groups.push_back(new_group);
}

void Warp::end_lockstep_wait(uint32_t lanes) {
  uint32_t arrived = 0;
  for (const ConvergenceGroup& group : groups)
    if (group.lockstep == lanes && group.state == GroupState::AwaitingLockstep) arrived |= group.mask;
  if (arrived != lanes) return;
  uint32_t merged = 0;
  while (groups[merged].lockstep != lanes) merged++;
  for (uint32_t k = static_cast<uint32_t>(groups.size()) - 1; k > merged; k--)
    if (groups[k].lockstep == lanes) remove_group(k);
  groups[merged].mask = lanes, groups[merged].lockstep = 0, groups[merged].state = GroupState::Ready;
}

void Warp::reconverge(uint32_t& group) {
  if (groups[group].is_unmergeable()) return;
  for (uint32_t k = 0; k < groups.size(); k++) {
    ConvergenceGroup &own = groups[group], &other = groups[k];
    if (k == group || other.frame != own.frame || other.pc != own.pc || other.is_unmergeable()) continue;
    own.mask |= other.mask;
    remove_group(k);
    if (k < group) group--;
    k--;
  }
}

Reconvergence Warp::find_reconvergence(uint32_t group) const {
  const ConvergenceGroup& own = groups[group];
  Reconvergence result;
  if (own.is_unmergeable()) return result;
  for (const ConvergenceGroup& other : groups) {
    if (&other == &own || other.frame != own.frame || other.is_unmergeable()) continue;
    if (other.pc >= own.pc) result.pc = std::min(result.pc, other.pc);
    else result.group_behind |= other.state == GroupState::Ready && !other.preempted;
  }
  return result;
}

void Warp::remove_group(uint32_t group) {
  release_frame(groups[group].frame);
  groups.erase(groups.begin() + group);
}

uint32_t Warp::select_group(Schedule& schedule) {
  if (groups.size() == 1) return 0;
  uint8_t runnable[kWarpSize];
  uint32_t count = 0, first = 0;
  for (int pass = 0; pass < 2 && !count; pass++) {
    for (uint32_t k = 0; k < groups.size(); k++) {
      ConvergenceGroup& group = groups[k];
      if (pass) group.preempted = false;
      if (group.state != GroupState::Ready || group.preempted) continue;
      if (!count || is_behind(group, groups[first])) first = k;
      runnable[count++] = static_cast<uint8_t>(k);
    }
  }
  return count > 1 && schedule.should_run_divergent() ? runnable[schedule.choose_index(count)] : first;
}

void Warp::recheck_warp_syncs() {
  for (ConvergenceGroup& group : groups)
    if (group.state == GroupState::AwaitingWarpSync) group.state = GroupState::Ready;
}

}  // namespace vgpu
