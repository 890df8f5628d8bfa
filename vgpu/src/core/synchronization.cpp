// Barriers of a block, and synchronization of the lanes of a warp.
#include "block.h"

namespace vgpu {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(__builtin_ctz(mask)); }
uint32_t count_lanes(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

const Instruction& instruction_of(const ConvergenceGroup& group) { return group.frame->program->code[group.pc]; }

// Writes a barrier's result to the registers of a group that waited at it.
void write_vote(const ConvergenceGroup& group, const Barrier& barrier) {
  const Instruction& i = instruction_of(group);
  WarpContext context;
  context.frame = group.frame->registers_base();
  context.active_mask = group.mask;
  if (i.variant == kBarrierCount)
    return for_each_lane(group.mask, [&](uint32_t l) { lane_values<uint32_t>(context, i.d)[l] = barrier.true_votes; });
  const bool result = i.variant == kBarrierAll ? barrier.true_votes == barrier.votes : barrier.true_votes != 0;
  write_predicate(context, i.d, result ? kFullMask : 0);
}

// Returns whether the group waits at bar.warp.sync, at which lanes may meet from different program counters.
bool waits_for_lanes(const ConvergenceGroup& group) {
  return group.state == GroupState::AwaitingWarpSync && !instruction_of(group).execute;
}

uint32_t named_lanes(const ConvergenceGroup& group) {
  WarpContext context;
  context.frame = group.frame->registers_base();
  return lane_values<uint32_t>(context, instruction_of(group).b)[first_lane(group.mask)];
}

// Returns the first set of lanes of the mask that name the same lanes, all of which have arrived or exited; 0: there is none.
uint32_t complete_lanes(const uint32_t* named, uint32_t mask, uint32_t live) {
  for (uint32_t remaining = mask; remaining;) {
    const uint32_t expected = named[first_lane(remaining)], first = 1u << first_lane(remaining);
    uint32_t lanes = 0;
    for_each_lane(remaining, [&](uint32_t l) { lanes |= uint32_t(named[l] == expected) << l; });
    lanes &= expected | first;
    if ((expected & live & ~lanes) == 0) return lanes;
    remaining &= ~lanes;
  }
  return 0;
}

}  // namespace

// Step::Next: the group goes on with its next instruction.  Step::Stop: its slice of execution ends.
Step Block::arrive(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t pc = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) warp.diverge(group, warp.groups[group].mask & ~mask, pc + 1);
  if (!mask) return warp.remove_group(group), Step::Stop;
  ConvergenceGroup& g = warp.groups[group];
  const uint32_t lane = first_lane(mask), word = lane_values<uint32_t>(context_, i.a)[lane];
  const uint32_t number = i.count == kNumberAndThreads ? word & 0xffff : word;
  if (number >= kBarriersPerBlock) return set_fault(KernelFault::IllegalInstruction, &i, g.frame->program), Step::Stop;
  Barrier& barrier = barriers_[number];
  barrier.expected = i.count == kAllThreads    ? 0
                     : i.count == kSomeThreads ? lane_values<uint32_t>(context_, i.b)[lane]
                                               : word >> 16;
  barrier.arrived += count_lanes(mask);
  if (i.variant >= kBarrierCount) {
    barrier.true_votes += count_lanes(lanes_meeting_condition(i) & mask);
    barrier.votes += count_lanes(mask);
  }
  if (i.variant == kBarrierArrive) {
    barrier.has_nonwaiting_arrivals = true;
    g.pc++;
  } else {
    g.state = GroupState::AwaitingBarrier;
    g.barrier = number;
  }
  release_complete_barriers();
  return Step::Stop;
}

void Block::release_complete_barriers() {
  for (uint32_t remaining = barriers_.used(); remaining; remaining &= remaining - 1)
    if (barriers_.is_complete(first_lane(remaining), live_threads_)) release_barrier(first_lane(remaining));
}

void Block::release_barrier(uint32_t number) {
  const Barrier barrier = barriers_.exchange_for_new(number);
  if (context_.deferred)  // performs the atomics that let others execute first
    for (DeferralList& own : deferrals_) context_.deferred->settle(own, kFullMask);
  // A barrier of a given number of threads does not wait for others to exit, as one without a number does.
  const uint32_t needed_for_all = barrier.expected ? context_.threads : live_threads_;
  const bool all_threads = !barrier.has_nonwaiting_arrivals && barrier.arrived >= needed_for_all;
  if (context_.observer) context_.observer->on_block_barrier(context_, all_threads);
  for (Warp& warp : warps_) {
    for (ConvergenceGroup& g : warp.groups) {
      if (g.state != GroupState::AwaitingBarrier || g.barrier != number) continue;
      if (instruction_of(g).variant >= kBarrierCount) {
        write_vote(g, barrier);
        if (context_.observer && !all_threads)
          context_.observer->on_schedule_source(instruction_of(g), ScheduleSource::PartialBarrierVote);
      }
      g.state = GroupState::Ready;
      g.preempted = false;
      g.pc++;
    }
    scheduler_.set_ready(warp.number, warp.is_runnable());
  }
  scheduler_.wake_all();
}

// Performs deferred atomics of these lanes of the selected warp, which have synchronized.
void Block::on_warp_sync(uint32_t lanes) {
  if (context_.deferred) context_.deferred->settle(*context_.deferrals, lanes);
  if (context_.observer) context_.observer->on_warp_sync(context_, lanes);
}

Step Block::synchronize_warp(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t pc = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) warp.diverge(group, warp.groups[group].mask & ~mask, pc + 1);
  if (!mask) return warp.remove_group(group), Step::Stop;
  const uint32_t lanes = complete_lanes(lane_values<uint32_t>(context_, i.b), mask, warp.convergence.live);
  if (lanes != mask && lanes) {  // the other lanes synchronize separately
    warp.diverge(group, mask & ~lanes, pc);
    warp.groups.back().state = GroupState::AwaitingWarpSync;
  }
  if (!lanes) {
    warp.groups[group].state = GroupState::AwaitingWarpSync;
    return Step::Stop;
  }
  context_.active_mask = lanes;
  if (i.execute) i.execute(context_, i);
  else on_warp_sync(lanes);
  warp.convergence.reconverge(lanes);
  if (!i.execute) warp.convergence.confirm(lanes);  // code that follows relies on exactly these lanes being active
  if (context_.observer && context_.convergence) context_.observer->on_convergence(context_);
  warp.groups[group].pc = pc + 1;
  warp.groups[group].is_exclusive = !i.execute && i.variant == kExclusive;
  warp.recheck_warp_syncs();
  return warp.groups.size() > 1 ? Step::Stop : Step::Next;
}

// Removes lanes from the sets that others wait for, and lets those check again.
Step Block::leave_warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  warp.groups[group].pc++;
  if (!mask) return Step::Next;
  context_.active_mask = mask;
  i.execute(context_, i);
  warp.recheck_warp_syncs();
  return warp.groups.size() > 1 ? Step::Stop : Step::Next;
}

// Releases lanes that wait for each other in warp synchronizations at different program counters; returns whether there are any.
bool Block::release_diverged_warp_sync(Warp& warp) {
  for (const ConvergenceGroup& first : warp.groups) {
    if (!waits_for_lanes(first)) continue;
    const uint32_t lanes = named_lanes(first), expected = lanes & warp.convergence.live;
    uint32_t arrived = 0;
    std::vector<ConvergenceGroup*> arrived_groups;
    for (ConvergenceGroup& group : warp.groups) {
      if (!waits_for_lanes(group) || named_lanes(group) != lanes) continue;
      arrived |= group.mask;
      arrived_groups.push_back(&group);
    }
    if ((arrived & expected) != expected) continue;
    select_warp(warp);
    on_warp_sync(arrived);
    for (ConvergenceGroup* group : arrived_groups)
      group->is_exclusive = instruction_of(*group).variant == kExclusive, group->state = GroupState::Ready, group->pc++;
    return true;
  }
  return false;
}

}  // namespace vgpu
