// Branches, calls and returns of convergence groups.
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

// Lets each lane branch to its own target.  target_of(lane) returns kNoPc for an invalid target.
template <class F> Step ControlFlow::branch_each(Warp& warp, uint32_t group, uint32_t mask, F target_of) {
  uint32_t target[kWarpSize], pc = warp.groups[group].pc, remaining = mask;
  for_each_lane(mask, [&](uint32_t l) { target[l] = target_of(l); });
  while (remaining) {
    const uint32_t common_target = target[__builtin_ctz(remaining)];
    uint32_t same = 0;
    if (common_target == kNoPc) return fail(KernelFault::OutOfBounds);
    for_each_lane(remaining, [&](uint32_t l) { same |= uint32_t(target[l] == common_target) << l; });
    remaining &= ~same;
    if (same == warp.groups[group].mask) {
      warp.groups[group].pc = common_target;
      return Step::Next;
    }
    warp.diverge(group, same, common_target);
  }
  warp.groups[group].pc = pc + 1;
  return Step::Next;
}

Step ControlFlow::branch_indexed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  const uint32_t* index = lane_values<uint32_t>(context_, i.a);
  const std::vector<uint32_t>& table = warp.groups[group].frame->program->branch_tables[static_cast<size_t>(i.imm)];
  return branch_each(warp, group, mask, [&](uint32_t l) { return index[l] < table.size() ? table[index[l]] : kNoPc; });
}

Step ControlFlow::branch_computed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  const uint32_t *value = lane_values<uint32_t>(context_, i.a), offset = static_cast<uint32_t>(i.imm);
  const DecodedFunction& program = *warp.groups[group].frame->program;
  const uint32_t first = program.parts.empty() ? 0 : 1;  // in linked code, 0 is a pointer to no function
  return branch_each(warp, group, mask, [&](uint32_t l) {
    const uint32_t sum = value[l] + offset;
    return sum % i.e == 0 && sum / i.e >= first && sum / i.e < program.code.size() ? sum / i.e : kNoPc;
  });
}

// BRA.DIV and BRA.CONV: the whole group branches by whether its lanes with a true guard are all live lanes that i.a names.  The
// guard is false where lanes name different sets.  is_certain: whether every schedule gives the same answer.
Step ControlFlow::branch_on_divergence(Warp& warp, uint32_t group, const Instruction& i, uint32_t guarded) {
  uint32_t mask = warp.groups[group].mask;
  if (mask) {
    const uint32_t named_lanes = lane_values<uint32_t>(context_, i.a)[__builtin_ctz(mask)] ^ (i.e ? kFullMask : 0);
    const bool is_converged = (named_lanes & warp.convergence.live & ~guarded) == 0;
    const uint32_t lanes_converged = warp.convergence.lanes_converged_with(mask),
                   expected_lanes = (named_lanes & warp.convergence.live) | mask;
    const bool is_certain = !(expected_lanes & ~lanes_converged) && !(named_lanes & warp.convergence.exited_diverged);
    if (context_.observer && !is_certain) context_.observer->on_schedule_source(i, ScheduleSource::ActiveLanes);
    if (is_certain && (named_lanes & warp.convergence.live) == lanes_converged) warp.convergence.confirm(lanes_converged);
    if (is_converged != (i.variant == kIfConverged)) mask = 0;
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
  ConvergenceGroup& g = warp.groups[group];
  CallFrame* frame = warp.push_frame(*callee);
  frame->caller = caller, frame->site = &site, frame->depth = caller->depth + 1, frame->return_pc = next;
  frame->ref_count = 1;  // the group's reference to the caller is now the new frame's
  frame->parameters.assign(size_t(callee->parameter_bytes) * kWarpSize, 0);
  std::copy_n(caller->registers_base(), kSpecialBytes, frame->registers_base());
  for_each_lane(mask, [&](uint32_t l) {
    for (const CallSite::ArgumentCopy& copy : site.arguments)
      std::copy_n(&caller->scratch[size_t(l) * caller->program->scratch_bytes + copy.from], copy.size,
                  &frame->parameters[size_t(l) * callee->parameter_bytes + copy.to]);
  });
  g.frame = frame;
  g.pc = 0;
  memory_.bind(context_, frame);
  if (context_.observer) context_.observer->on_function_entry(context_, *callee);
  return Step::Next;
}

// Returns the function that the first lane calls.  Lanes that call another one are split off, and stay at the call.
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
  uint32_t frame_bytes = frame->program->parameter_bytes, caller_bytes = caller->program->scratch_bytes;
  for_each_lane(mask, [&](uint32_t l) {
    for (const CallSite::ArgumentCopy& copy : site.results)
      std::copy_n(&frame->parameters[size_t(l) * frame_bytes + copy.from], copy.size,
                  &caller->scratch[size_t(l) * caller_bytes + copy.to]);
  });
  caller->ref_count++;
  warp.groups[group].frame = caller;
  warp.groups[group].pc = frame->return_pc;
  warp.release_frame(frame);
  return Step::Stop;  // the next slice reconverges the lanes that return
}

}  // namespace vgpu
