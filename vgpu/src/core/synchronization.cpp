// Where lanes of a block wait for each other: its barriers, and what a warp's lanes tell each other.
#include "block.h"

namespace vgpu {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(__builtin_ctz(mask)); }
uint32_t count_lanes(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

const Instruction& instruction_of(const ConvergenceGroup& group) { return group.frame->program->code[group.pc]; }

// A barrier's result, in the registers of a group that waited at it.
void write_vote(const ConvergenceGroup& group, const Barrier& barrier) {
  const Instruction& i = instruction_of(group);
  WarpContext to;
  to.frame = group.frame->registers_base();
  to.active_mask = group.mask;
  if (i.variant == kBarrierCount)
    return for_each_lane(group.mask, [&](uint32_t l) { lane_values<uint32_t>(to, i.d)[l] = barrier.holding; });
  const bool holds = i.variant == kBarrierAll ? barrier.holding == barrier.votes : barrier.holding != 0;
  write_predicate(to, i.d, holds ? kFullMask : 0);
}

// Waits at bar.warp.sync, which names lanes and not a place.
bool waits_for_lanes(const ConvergenceGroup& group) {
  return group.state == GroupState::AwaitingWarpSync && !instruction_of(group).execute;
}

uint32_t lanes_named(const ConvergenceGroup& group) {
  WarpContext of;
  of.frame = group.frame->registers_base();
  return lane_values<uint32_t>(of, instruction_of(group).b)[first_lane(group.mask)];
}

// Of these lanes the first ones that name each other and wait for no one else that lives; 0: there are none.
uint32_t complete_lanes(const uint32_t* named, uint32_t mask, uint32_t live) {
  for (uint32_t left = mask; left;) {
    const uint32_t expected = named[first_lane(left)], first = 1u << first_lane(left);
    uint32_t same = 0;
    for_each_lane(left, [&](uint32_t l) { same |= uint32_t(named[l] == expected) << l; });
    same &= expected | first;
    if ((expected & live & ~same) == 0) return same;
    left &= ~same;
  }
  return 0;
}

}  // namespace

Step Block::arrive(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t at = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) warp.diverge(group, warp.groups[group].mask & ~mask, at + 1);
  if (!mask) return warp.remove_group(group), Step::Stop;
  ConvergenceGroup& g = warp.groups[group];
  uint32_t lane = first_lane(mask), which = lane_values<uint32_t>(context_, i.a)[lane];
  if (which >= kBarriersPerBlock) return set_fault(KernelFault::IllegalInstruction, &i, g.frame->program), Step::Stop;
  Barrier& barrier = barriers_[which];
  barrier.expected = i.count == 2 ? lane_values<uint32_t>(context_, i.b)[lane] : 0;
  barrier.arrived += count_lanes(mask);
  if (i.variant >= kBarrierCount) {
    barrier.holding += count_lanes(condition(i) & mask);
    barrier.votes += count_lanes(mask);
  }
  if (i.variant == kBarrierArrive) {
    barrier.some_only_arrived = true;
    g.pc++;
  } else {
    g.state = GroupState::AwaitingBarrier;
    g.barrier = which;
  }
  release_complete_barriers();
  return Step::Stop;
}

void Block::release_complete_barriers() {
  for (uint32_t k = 0; k < kBarriersPerBlock; k++)
    if (barriers_.is_complete(k, live_threads_)) release_barrier(k);
}

void Block::release_barrier(uint32_t which) {
  const Barrier barrier = barriers_.take(which);
  if (context_.deferred)
    for (DeferralList& own : deferrals_) context_.deferred->settle(own, kFullMask);
  const bool whole = !barrier.some_only_arrived && barrier.arrived >= live_threads_;
  if (context_.observer) context_.observer->on_block_barrier(context_, whole);
  for (Warp& warp : warps_) {
    for (ConvergenceGroup& g : warp.groups) {
      if (g.state != GroupState::AwaitingBarrier || g.barrier != which) continue;
      if (instruction_of(g).variant >= kBarrierCount) {
        write_vote(g, barrier);
        if (context_.observer && !whole) context_.observer->on_schedule_source(instruction_of(g), ScheduleSource::PartialVote);
      }
      g.state = GroupState::Ready;
      g.preempted = false;
      g.pc++;
    }
    scheduler_.set_ready(warp.number, warp.is_runnable());
  }
  scheduler_.wake_all();
}

// By these lanes of the selected warp: what they did before is done.
void Block::on_warp_sync(uint32_t lanes) {
  if (context_.deferred) context_.deferred->settle(*context_.deferrals, lanes);
  if (context_.observer) context_.observer->on_warp_sync(context_, lanes);
}

Step Block::warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t at = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) warp.diverge(group, warp.groups[group].mask & ~mask, at + 1);
  if (!mask) return warp.remove_group(group), Step::Stop;
  const uint32_t same = complete_lanes(lane_values<uint32_t>(context_, i.b), mask, warp.convergence.live);
  if (same != mask && same) {  // other lanes name others: they meet by themselves
    warp.diverge(group, mask & ~same, at);
    warp.groups.back().state = GroupState::AwaitingWarpSync;
  }
  if (!same) {
    warp.groups[group].state = GroupState::AwaitingWarpSync;
    return Step::Stop;
  }
  context_.active_mask = same;
  if (i.execute) i.execute(context_, i);
  else on_warp_sync(same);
  warp.convergence.meet(same);
  if (context_.observer && context_.convergence) context_.observer->on_convergence(context_);
  warp.groups[group].pc = at + 1;
  warp.recheck_warp_syncs();
  return warp.groups.size() > 1 ? Step::Stop : Step::Next;
}

// Others may have waited for these lanes alone.
Step Block::leave_warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  warp.groups[group].pc++;
  if (!mask) return Step::Next;
  context_.active_mask = mask;
  i.execute(context_, i);
  warp.recheck_warp_syncs();
  return warp.groups.size() > 1 ? Step::Stop : Step::Next;
}

// Lanes that wait for each other at different places: they meet as well.
bool Block::warp_sync_diverged(Warp& warp) {
  for (const ConvergenceGroup& first : warp.groups) {
    if (!waits_for_lanes(first)) continue;
    const uint32_t named = lanes_named(first), expected = named & warp.convergence.live;
    uint32_t here = 0;
    std::vector<ConvergenceGroup*> meeting;
    for (ConvergenceGroup& group : warp.groups) {
      if (!waits_for_lanes(group) || lanes_named(group) != named) continue;
      here |= group.mask;
      meeting.push_back(&group);
    }
    if ((here & expected) != expected) continue;
    select_warp(warp);
    on_warp_sync(here);
    for (ConvergenceGroup* group : meeting) group->state = GroupState::Ready, group->pc++;
    return true;
  }
  return false;
}

}  // namespace vgpu
