// A block's atomics that let others go first: the lanes that wait with them, and those that go on after all.
#include "block.h"

namespace vgpu {

void Block::settle_shared() {
  if (!context_.deferred) return;
  for (DeferralList& own : deferrals_) context_.deferred->settle_shared(own, context_);
}

// With the one whose turn it is: it is this block's.
void Block::resume_deferred(DeferredAtomics& deferred_atomics) {
  DeferredAtomics::Entry one = deferred_atomics.pop_next();
  Warp& warp = warps_[one.warp];
  uint32_t group = 0;
  while (warp.groups[group].state != GroupState::AtomicDeferred || warp.groups[group].mask != 1u << one.lane) group++;
  // It stands before its atomic, whose guard let it come this far: that alone runs now.
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

// The lanes that did not come stay before the atomic: those that are held each by itself.
void Block::split_deferred_lanes(Warp& warp, uint32_t group) {
  uint32_t at = warp.groups[group].pc - 1;
  for (uint32_t left = context_.deferred_mask; left; left &= left - 1) {
    warp.diverge(group, left & -left, at);
    warp.groups.back().state = GroupState::AtomicDeferred, deferred_lanes_++;
  }
  if (context_.blocked_mask) warp.diverge(group, context_.blocked_mask, at);
  context_.deferred_mask = context_.blocked_mask = 0;
  if (!warp.groups[group].mask) warp.remove_group(group);
}

}  // namespace vgpu
