// Call frames and convergence groups of a warp.
#include "warp.h"

#include <algorithm>

namespace vgpu {
namespace {

bool goes_before(const ConvergenceGroup& one, const ConvergenceGroup& other) {
  if (one.frame != other.frame && one.frame->depth != other.frame->depth) return one.frame->depth > other.frame->depth;
  return one.pc < other.pc;
}

}  // namespace

uint8_t* CallFrame::registers_base() { return align_within(registers, 64); }

uint8_t* CallFrame::local_base() { return align_within(local, program->local_align); }

void CallFrame::reset(const DecodedFunction& p) {
  if (program != &p) {
    program = &p, has_launch_constants = false;
    charge.set(p.register_bytes + p.constants.size() +
               uint64_t(kWarpSize) * (p.local_bytes + p.scratch_bytes + p.parameter_bytes));
    registers.assign(p.register_bytes + p.constants.size() + 64, 0);
    std::copy(p.constants.begin(), p.constants.end(), registers_base() + p.register_bytes);
    local.assign(size_t(p.local_bytes) * kWarpSize + p.local_align, 0);
    scratch.assign(size_t(p.scratch_bytes) * kWarpSize, 0);
  } else {
    std::fill_n(registers_base(), p.register_bytes, 0);
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
  auto same = std::find_if(free_frames.begin(), free_frames.end(), [&](const auto& one) { return one->program == &program; });
  std::unique_ptr<CallFrame> frame;
  if (same != free_frames.end()) {
    frame = std::move(*same);
    free_frames.erase(same);
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
    auto at = std::find_if(frames.begin(), frames.end(), [&](const auto& one) { return one.get() == frame; });
    free_frames.push_back(std::move(*at));
    frames.erase(at);
    frame = caller;
  }
}

bool Warp::is_runnable() const {
  return std::any_of(groups.begin(), groups.end(), [](const ConvergenceGroup& g) { return g.state == GroupState::Ready; });
}

void Warp::diverge(uint32_t group, uint32_t mask, uint32_t pc) {
  ConvergenceGroup other = groups[group];
  other.mask = mask, other.pc = pc, other.state = GroupState::Ready, other.yielded = other.preempted = false;
  other.frame->ref_count++;
  groups[group].mask &= ~mask;
  convergence.diverge(mask);
  groups.push_back(other);
}

void Warp::reconverge(uint32_t& group) {
  for (uint32_t k = 0; k < groups.size(); k++) {
    ConvergenceGroup &own = groups[group], &other = groups[k];
    if (k == group || other.frame != own.frame || other.pc != own.pc || other.waits_apart()) continue;
    own.mask |= other.mask;
    remove_group(k);
    if (k < group) group--;
    k--;
  }
}

Reconvergence Warp::find_reconvergence(uint32_t group) const {
  const ConvergenceGroup& own = groups[group];
  Reconvergence found;
  for (const ConvergenceGroup& other : groups) {
    if (&other == &own || other.frame != own.frame || other.waits_apart()) continue;
    if (other.pc >= own.pc) found.pc = std::min(found.pc, other.pc);
    else found.group_behind |= other.state == GroupState::Ready && !other.preempted;
  }
  return found;
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
      ConvergenceGroup& one = groups[k];
      if (pass) one.preempted = false;
      if (one.state != GroupState::Ready || one.preempted) continue;
      if (!count || goes_before(one, groups[first])) first = k;
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
