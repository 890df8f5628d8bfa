// Suspends and resumes the lanes of a block that wait for their deferred atomics: an atomic is deferred if the schedule lets
// another one at its address execute first.  Atomics without a used old value are deferred too, but their lanes continue; settling
// them performs them.
#include "block.h"

namespace vgpu {
namespace {

// Moves lanes to a group of their own, to execute an atomic later.  Lanes in lockstep stay converged.
void split_off(Warp& warp, uint32_t group, uint32_t lanes, uint32_t pc) {
  if (warp.groups[group].lockstep) warp.split(group, lanes, pc);
  else warp.diverge(group, lanes, pc);
}

}  // namespace

void Block::settle_shared() {
  if (!context_.deferred) return;
  for (DeferralList& deferrals : deferrals_) context_.deferred->settle_shared(deferrals, context_);
}

// Executes the next deferred atomics, which belong to one instruction of a warp of this block.
void Block::resume_deferred(DeferredAtomics& deferred_atomics) {
  Warp& warp = warps_[deferred_atomics.next()->warp];
  const uint32_t lanes = deferred_atomics.pop_next();
  uint32_t group = 0;
  while (warp.groups[group].state != GroupState::AtomicDeferred || !(warp.groups[group].mask & lanes)) group++;
  if (lanes != warp.groups[group].mask) {
    warp.split(group, lanes, warp.groups[group].pc);
    group = static_cast<uint32_t>(warp.groups.size()) - 1;
  }
  // The group's next instruction is the atomic, whose guard was true; only that instruction runs now.
  ConvergenceGroup& g = warp.groups[group];
  const DecodedFunction& program = *g.frame->program;
  const Instruction& i = program.code[g.pc];
  g.state = GroupState::Ready, g.yielded = false, deferred_lanes_ -= static_cast<uint32_t>(__builtin_popcount(lanes));
  memory_.bind(context_, g.frame);
  select_warp(warp);
  context_.active_mask = lanes, context_.deferral_done = true;
  i.execute(context_, i);
  deferred_atomics.settle_passed();
  context_.deferral_done = false;
  result_.instructions += static_cast<uint32_t>(__builtin_popcount(lanes));
  if (context_.fault != KernelFault::None) set_fault(context_.fault, &i, &program);
  else g.pc++;
  if (g.lockstep && context_.fault == KernelFault::None) await_lockstep(warp, group);
  quantum_expired_ = false;
  scheduler_.set_ready(warp.number, warp.is_runnable());
  result_.atomics += context_.atomics, context_.atomics = 0;
}

// Splits off the lanes that did not execute the atomic.  In lockstep, the others wait for them, as the next instruction may pass
// the old value to them; of a frequent atomic, too (deferred_atomics.h).
void Block::split_deferred_lanes(Warp& warp, uint32_t group) {
  const uint32_t pc = warp.groups[group].pc - 1;
  const bool in_lockstep = context_.convergence || warp.groups[group].frame->program->code[pc].is_frequent;
  if (in_lockstep && !warp.groups[group].lockstep) warp.groups[group].lockstep = warp.groups[group].mask;
  if (const uint32_t deferred = context_.deferred_mask) {
    if (!in_lockstep) warp.convergence.separate(deferred);  // each lane waits for an atomic of its own
    split_off(warp, group, deferred, pc);
    warp.groups.back().state = GroupState::AtomicDeferred;
    deferred_lanes_ += static_cast<uint32_t>(__builtin_popcount(deferred));
  }
  // Blocked lanes execute the atomic later: others at its address, which have waited, come first.
  if (context_.blocked_mask) split_off(warp, group, context_.blocked_mask, pc);
  context_.deferred_mask = context_.blocked_mask = 0;
  if (!warp.groups[group].mask) warp.remove_group(group);
  else if (in_lockstep) warp.groups[group].state = GroupState::AwaitingLockstep;
}

// Lets a group that has executed its atomic wait for the lanes that execute it in lockstep.
void Block::await_lockstep(Warp& warp, uint32_t group) {
  warp.groups[group].state = GroupState::AwaitingLockstep;
  warp.end_lockstep_wait(warp.groups[group].lockstep);
}

}  // namespace vgpu
