// Executes branches, calls, returns and exits.
#include "control_flow.h"

#include <algorithm>

namespace vgpu {

Step ControlFlow::branch(Warp& warp, uint32_t group, uint32_t mask, uint32_t target) {
  ConvergenceGroup& g = warp.groups[group];
  if (mask == g.mask) {
    g.pc = target;
    return Step::Next;
  }
  g.pc++;
  if (mask) warp.diverge(group, mask, target);
  return Step::Next;
}

// target_of(lane): kNoPc where there is no such place.
template <class F> Step ControlFlow::branch_each(Warp& warp, uint32_t group, uint32_t mask, F target_of) {
  uint32_t target[kWarpSize], at = warp.groups[group].pc, left = mask;
  for_each_lane(mask, [&](uint32_t l) { target[l] = target_of(l); });
  while (left) {
    const uint32_t chosen = target[__builtin_ctz(left)];
    uint32_t same = 0;
    if (chosen == kNoPc) return fail(KernelFault::OutOfBounds);
    for_each_lane(left, [&](uint32_t l) { same |= uint32_t(target[l] == chosen) << l; });
    left &= ~same;
    if (same == warp.groups[group].mask) {
      warp.groups[group].pc = chosen;
      return Step::Next;
    }
    warp.diverge(group, same, chosen);
  }
  warp.groups[group].pc = at + 1;
  return Step::Next;
}

Step ControlFlow::branch_indexed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  const uint32_t* index = lane_values<uint32_t>(context_, i.a);
  const std::vector<uint32_t>& table = warp.groups[group].frame->program->branch_tables[static_cast<size_t>(i.imm)];
  return branch_each(warp, group, mask, [&](uint32_t l) { return index[l] < table.size() ? table[index[l]] : kNoPc; });
}

Step ControlFlow::branch_computed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  const uint32_t *value = lane_values<uint32_t>(context_, i.a), added = static_cast<uint32_t>(i.imm);
  const size_t size = warp.groups[group].frame->program->code.size();
  return branch_each(warp, group, mask, [&](uint32_t l) {
    const uint32_t sum = value[l] + added;
    return sum % i.e == 0 && sum / i.e < size ? sum / i.e : kNoPc;
  });
}

Step ControlFlow::branch_on_divergence(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  if (mask) {
    const uint32_t named = lane_values<uint32_t>(context_, i.a)[__builtin_ctz(mask)] ^ (i.e ? kFullMask : 0);
    const bool converged = (named & warp.convergence.live & ~warp.groups[group].mask) == 0;
    const uint32_t mates = warp.convergence.mates(mask), apart = (named & warp.convergence.live) | mask;
    if (context_.observer && ((apart & ~mates) || (named & warp.convergence.ended_apart)))
      context_.observer->on_schedule_source(i, ScheduleSource::ActiveLanes);
    if (converged != (i.variant == kIfConverged)) mask = 0;
  }
  return branch(warp, group, mask, static_cast<uint32_t>(i.imm));
}

Step ControlFlow::call(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t next = warp.groups[group].pc + 1;
  if (mask != warp.groups[group].mask) warp.diverge(group, warp.groups[group].mask & ~mask, next);
  if (!mask) return warp.remove_group(group), Step::Stop;
  CallFrame* caller = warp.groups[group].frame;
  const CallSite& site = caller->program->calls[static_cast<size_t>(i.imm)];
  if (caller->depth + 1 >= launch_.max_call_depth) return fail(KernelFault::CallDepth);
  const DecodedFunction* callee =
      site.callee.empty() ? resolve_indirect_callee(warp, group, i, mask) : launch_.functions->program(site.callee);
  if (!callee || callee->parameter_bytes < site.parameter_bytes) return fail(KernelFault::OutOfBounds);
  if (context_.observer) context_.observer->on_function_entry(*callee);
  ConvergenceGroup& g = warp.groups[group];
  CallFrame* frame = warp.push_frame(*callee);
  frame->caller = caller, frame->site = &site, frame->depth = caller->depth + 1, frame->return_pc = next;
  frame->ref_count = 1;  // the group's hold of the caller becomes the new frame's
  frame->parameters.assign(size_t(callee->parameter_bytes) * kWarpSize, 0);
  std::copy_n(caller->registers_base(), kSpecialBytes, frame->registers_base());
  for_each_lane(mask, [&](uint32_t l) {
    for (const CallSite::ArgumentCopy& p : site.arguments)
      std::copy_n(&caller->scratch[size_t(l) * caller->program->scratch_bytes + p.from], p.size,
                  &frame->parameters[size_t(l) * callee->parameter_bytes + p.to]);
  });
  g.frame = frame;
  g.pc = 0;
  memory_.bind(context_, frame);
  return Step::Next;
}

// What the first lane's pointer leads to; lanes with another one stay at the call, apart.
const DecodedFunction* ControlFlow::resolve_indirect_callee(Warp& warp, uint32_t group, const Instruction& i, uint32_t& mask) {
  const uint64_t* target = lane_values<uint64_t>(context_, i.a);
  uint64_t first = target[__builtin_ctz(mask)];
  uint32_t same = mask & lanes_where([=](uint32_t l) { return target[l] == first; });
  if (same != mask) warp.diverge(group, mask & ~same, warp.groups[group].pc);
  mask = same;
  return launch_.functions->program_at(first);
}

Step ControlFlow::return_from_call(Warp& warp, uint32_t group, uint32_t mask) {
  ConvergenceGroup& g = warp.groups[group];
  if (mask != g.mask) warp.diverge(group, g.mask & ~mask, g.pc + 1);
  if (!mask) return warp.remove_group(group), Step::Stop;
  CallFrame *frame = warp.groups[group].frame, *caller = frame->caller;
  const CallSite& site = *frame->site;
  uint32_t own = frame->program->parameter_bytes, theirs = caller->program->scratch_bytes;
  for_each_lane(mask, [&](uint32_t l) {
    for (const CallSite::ArgumentCopy& p : site.results)
      std::copy_n(&frame->parameters[size_t(l) * own + p.from], p.size, &caller->scratch[size_t(l) * theirs + p.to]);
  });
  caller->ref_count++;
  warp.groups[group].frame = caller;
  warp.groups[group].pc = frame->return_pc;
  warp.release_frame(frame);
  return Step::Stop;  // the next slice brings those together that come back
}

}  // namespace vgpu
