// Suspends and resumes the lanes of a block that wait for their deferred atomics.
#include "block.h"

namespace vgpu {

void Block::settle_shared() {
  if (!context_.deferred) return;
  for (DeferralList& deferrals : deferrals_) context_.deferred->settle_shared(deferrals, context_);
}

// Executes the next deferred atomic, which belongs to this block.
void Block::resume_deferred(DeferredAtomics& deferred_atomics) {
  DeferredAtomics::Entry entry = deferred_atomics.pop_next();
  Warp& warp = warps_[entry.warp];
  uint32_t group = 0;
  while (warp.groups[group].state != GroupState::AtomicDeferred || warp.groups[group].mask != 1u << entry.lane) group++;
  // The group's next instruction is the atomic, whose guard was true; only that instruction runs now.
  ConvergenceGroup& g = warp.groups[group];
  const DecodedFunction& program = *g.frame->program;
  const Instruction& i = program.code[g.pc];
  g.state = GroupState::Ready, g.yielded = false, deferred_lanes_--;
  memory_.bind(context_, g.frame);
  select_warp(warp);
  context_.active_mask = g.mask, context_.deferral_done = true;
  i.execute(context_, i);
  deferred_atomics.settle_passed();
  context_.deferral_done = false;
  result_.instructions++;
  if (context_.fault != KernelFault::None) set_fault(context_.fault, &i, &program);
  else g.pc++;
  quantum_expired_ = false;
  scheduler_.set_ready(warp.number, true);
  result_.atomics += context_.atomics, context_.atomics = 0;
}

// Splits off the lanes that did not execute the atomic; each deferred lane becomes a group of its own.
void Block::split_deferred_lanes(Warp& warp, uint32_t group) {
  uint32_t pc = warp.groups[group].pc - 1;
  for (uint32_t remaining = context_.deferred_mask; remaining; remaining &= remaining - 1) {
    warp.diverge(group, remaining & -remaining, pc);
    warp.groups.back().state = GroupState::AtomicDeferred, deferred_lanes_++;
  }
  if (context_.blocked_mask) warp.diverge(group, context_.blocked_mask, pc);
  context_.deferred_mask = context_.blocked_mask = 0;
  if (!warp.groups[group].mask) warp.remove_group(group);
}

}  // namespace vgpu
