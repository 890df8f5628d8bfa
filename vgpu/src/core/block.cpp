// Runs slices of a block: chooses a warp and a convergence group of it, and executes until it must switch.
#include "block.h"

#include <algorithm>
#include <cstdio>

#include "code_position.h"

namespace vgpu {
namespace {

constexpr uint32_t kQuantum = 20000;  // instructions of a group before it is preempted
constexpr uint8_t kSpinLimit = 8;     // reads of unchanged memory before a group is parked

uint32_t count_lanes(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

const char* describe(KernelFault fault) {
  switch (fault) {
    case KernelFault::None: return "";
    case KernelFault::OutOfBounds: return "an access outside of what was allocated";
    case KernelFault::Misaligned: return "an access that is not aligned";
    case KernelFault::Trap: return "a trap";
    case KernelFault::Deadlock: return "every thread waits";
    case KernelFault::NoProgress: return "no end within the instructions allowed";
    case KernelFault::CallDepth: return "calls too deep";
    case KernelFault::ReadOnly: return "a write to memory that kernels may only read";
    case KernelFault::Assertion: return "a failed assertion";
    case KernelFault::IllegalInstruction: return "an operand that the instruction does not have";
    case KernelFault::InvalidTextureObject: return "a texture or surface object that is none, or is over memory that is freed";
  }
  return "";
}

}  // namespace

Block::Block(const Launch& launch, Schedule& schedule, const DeviceMemory& memory, uint64_t& writes,
             DeferredAtomics* deferred_atomics)
    : launch_(launch),
      schedule_(schedule),
      memory_(launch, sizeof(Block) + launch.warps_per_block() * sizeof(Warp)),
      control_(launch, memory_, context_),
      warps_(launch.warps_per_block()),
      deferrals_(launch.warps_per_block()) {
  context_.shared = memory_.shared();
  context_.shared_bytes = memory_.shared_bytes();
  context_.memory = &memory;
  context_.heap = launch.heap;
  context_.textures = launch.textures;
  context_.schedule = &schedule;
  context_.visible_writes = &writes;
  context_.deferred = deferred_atomics, context_.resident_block = this;
  context_.observer = launch.observer;
  context_.threads = launch.threads_per_block();
  context_.compute_capability = launch.compute_capability;
  for (uint32_t k = 0; k < warps_.size(); k++) {
    warps_[k].number = k;
    warps_[k].special_registers.resize(kSpecialBytes);
    write_special_registers(launch, k, memory_.dynamic_offset(), warps_[k].special_registers.data());
  }
}

void Block::reset(uint32_t number) {
  context_.block = number;
  live_threads_ = launch_.threads_per_block();
  deferred_lanes_ = 0;
  scheduler_.reset(warps_.size());
  barriers_.reset();
  memory_.clear();
  const uint32_t multiprocessor = schedule_.multiprocessor_of(number, launch_.multiprocessors);
  for (Warp& warp : warps_) {
    warp.reset(*launch_.program, std::min(kWarpSize, launch_.threads_per_block() - warp.number * kWarpSize));
    write_block_index(launch_, number, multiprocessor, warp.groups[0].frame->registers_base());
    memory_.write_launch_constants(*warp.groups[0].frame);
  }
}

uint64_t Block::highest_priority() {
  uint64_t highest = 0;
  for (uint32_t remaining = scheduler_.runnable(*context_.visible_writes); remaining; remaining &= remaining - 1)
    highest = std::max(highest, schedule_.priority(number(), static_cast<uint32_t>(__builtin_ctz(remaining))));
  return highest;
}

void Block::run_slice() {
  if (context_.deferred && context_.deferred->next()) return resume_deferred(*context_.deferred);
  uint32_t remaining = scheduler_.runnable(*context_.visible_writes);
  if (!remaining) {
    for (Warp& warp : warps_)
      if (!warp.groups.empty() && release_diverged_warp_sync(warp)) return end_slice(warp);
    if (waits_for_deferred()) return;
    return set_fault(KernelFault::Deadlock, nullptr, launch_.program);
  }
  const auto priority = [&](uint32_t k) { return schedule_.priority(number(), nth_bit(remaining, k)); };
  Warp& warp = warps_[nth_bit(remaining, schedule_.choose_index(count_lanes(remaining), priority))];
  run_group(warp, warp.select_group(schedule_));
  end_slice(warp);
  // No thread of the block is left to overtake its atomics in shared memory.
  if (waits_for_deferred()) context_.deferred->release_shared(*this);
  result_.atomics += context_.atomics, context_.atomics = 0;
}

void Block::select_warp(const Warp& warp) {
  context_.warp = warp.number, context_.deferrals = &deferrals_[warp.number];
  context_.convergence = launch_.program->runs_in_lockstep ? &warp.convergence : nullptr;
  context_.follows_values = context_.observer && context_.observer->follows_values(context_);
}

void Block::end_slice(const Warp& warp) { scheduler_.set_ready(warp.number, warp.is_runnable()); }

void Block::preempt(Warp& warp, ConvergenceGroup& group) {
  group.preempted = true;
  scheduler_.preempt(warp.number);
  quantum_expired_ = true;
}

// Parks a group that spins on unchanged memory until another thread writes to memory.
void Block::park(Warp& warp, ConvergenceGroup& group) {
  group.preempted = true;
  const auto runs = [](const ConvergenceGroup& other) { return other.state == GroupState::Ready && !other.preempted; };
  if (std::none_of(warp.groups.begin(), warp.groups.end(), runs)) scheduler_.park(warp.number, *context_.visible_writes);
}

inline uint32_t Block::guarded_lanes(const Instruction& i, uint32_t mask) {
  if (i.guard < 0) return mask;
  return mask & (predicate(context_, static_cast<uint32_t>(i.guard)) ^ (i.negated ? kFullMask : 0));
}

void Block::notify_instruction(const Instruction& i, uint32_t group_mask, uint32_t active_mask) {
  context_.active_mask = active_mask;
  context_.observer->on_instruction(context_, i, group_mask);
}

// Executes an instruction that accesses memory which other threads access, too.
inline Block::VisibleStep Block::run_visible(Warp& warp, ConvergenceGroup& g, const Instruction& i, uint32_t mask) {
  if (mask && i.kind == InstructionKind::SchedulingPoint && !g.yielded &&
      schedule_.should_preempt(context_.block, warp.number)) {
    g.yielded = true;
    return VisibleStep::StopBefore;
  }
  g.yielded = false;
  if (!mask) return VisibleStep::Done;
  result_.instructions += count_lanes(mask);
  context_.active_mask = mask;
  const uint64_t writes = *context_.visible_writes;
  // Before a strong access or a fence, the late atomics of its lanes are performed.
  if (context_.deferred && i.variant != kWeak && !is_deferrable(i)) context_.deferred->settle(*context_.deferrals, mask);
  i.execute(context_, i);
  if (context_.deferred) context_.deferred->settle_passed();
  if (context_.fault != KernelFault::None) {
    set_fault(context_.fault, &i, g.frame->program);
    return VisibleStep::StopBefore;
  }
  if (context_.deferred_mask | context_.blocked_mask | g.lockstep) return VisibleStep::StopAfter;
  if (context_.result_changed || writes != *context_.visible_writes || (context_.deferred && is_deferrable(i))) {
    g.unchanged_reads = 0, context_.result_changed = false;
  } else if (++g.unchanged_reads >= kSpinLimit) {
    g.unchanged_reads = kSpinLimit - 1;
    park(warp, g);
    return VisibleStep::StopAfter;
  }
  return VisibleStep::Done;
}

// Executes instructions of this group up to `stop`, the next control flow instruction, or the end of the slice.
Step Block::run_until_control_flow(Warp& warp, uint32_t group, uint32_t stop, uint32_t& remaining) {
  ConvergenceGroup& g = warp.groups[group];
  const DecodedFunction& program = *g.frame->program;
  const Instruction* const code = program.code.data();
  const uint32_t group_mask = g.mask, first_pc = g.pc;
  uint32_t pc = first_pc;
  uint64_t executed = 0;
  Step step = Step::Next;
  for (; pc != stop && code[pc].kind <= InstructionKind::SchedulingPoint; pc++) {
    const Instruction& i = code[pc];
    const uint32_t mask = guarded_lanes(i, group_mask);
    if (remaining-- == 0) {
      preempt(warp, g);
      step = Step::Stop;
      break;
    }
    if (context_.follows_values) notify_instruction(i, group_mask, mask);
    if (i.kind == InstructionKind::Plain) {
      if (!mask) continue;
      executed += count_lanes(mask);
      context_.active_mask = mask;
      i.execute(context_, i);
      if (context_.fault == KernelFault::None) continue;
      set_fault(context_.fault, &i, &program);
      step = Step::Stop;
      break;
    }
    const VisibleStep visible_step = run_visible(warp, g, i, mask);
    if (visible_step == VisibleStep::Done) continue;
    pc += visible_step == VisibleStep::StopAfter;
    step = Step::Stop;
    break;
  }
  g.pc = pc;
  result_.instructions += executed;
  if (context_.deferred_mask | context_.blocked_mask) split_deferred_lanes(warp, group);
  else if (g.lockstep && pc != first_pc) await_lockstep(warp, group);
  return step;
}

void Block::run_group(Warp& warp, uint32_t group) {
  quantum_expired_ = false;
  select_warp(warp);
  warp.reconverge(group);
  memory_.bind(context_, warp.groups[group].frame);
  uint32_t remaining = kQuantum;
  uint32_t stop = warp.find_reconvergence(group).pc;
  while (run_until_control_flow(warp, group, stop, remaining) == Step::Next) {
    ConvergenceGroup& g = warp.groups[group];
    if (g.pc == stop) {
      warp.reconverge(group);
      stop = warp.find_reconvergence(group).pc;
      continue;
    }
    const Instruction& i = g.frame->program->code[g.pc];
    g.is_exclusive = false;
    const uint32_t mask = guarded_lanes(i, g.mask), previous_pc = g.pc;
    if (remaining-- == 0) return preempt(warp, g);
    result_.instructions += count_lanes(mask);
    if (context_.follows_values) notify_instruction(i, g.mask, mask);
    g.yielded = false;
    if (i.kind == InstructionKind::Branch && !mask) {
      g.pc++;  // no lane branches, so `stop` remains valid
      continue;
    }
    if (i.kind == InstructionKind::Branch && mask == g.mask) g.pc = static_cast<uint32_t>(i.imm);
    else if (execute_control(warp, group, i, mask) == Step::Stop) return;
    stop = kNoPc;
    if (warp.groups.size() == 1) continue;
    const Reconvergence reconvergence = warp.find_reconvergence(group);
    if (reconvergence.group_behind && warp.groups[group].pc != previous_pc + 1) return;
    stop = reconvergence.pc;
  }
}

// Returns the lanes in which an instruction's second condition is true.
uint32_t Block::lanes_meeting_condition(const Instruction& i) { return predicate(context_, i.c) ^ (i.e ? kFullMask : 0); }

Step Block::execute_control(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  CallFrame* const frame = warp.groups[group].frame;
  const DecodedFunction* const program = frame->program;
  const auto check_fault = [&](Step step) {
    if (control_.fault() != KernelFault::None) set_fault(control_.fault(), &i, program);
    return step;
  };
  switch (i.kind) {
    case InstructionKind::Branch: return control_.branch(warp, group, mask, static_cast<uint32_t>(i.imm));
    case InstructionKind::IndexedBranch: return check_fault(control_.branch_indexed(warp, group, i, mask));
    case InstructionKind::Call: return check_fault(control_.call(warp, group, i, mask));
    case InstructionKind::Return:
      return frame->caller ? control_.return_from_call(warp, group, mask) : exit_lanes(warp, group, mask);
    case InstructionKind::Exit: return exit_lanes(warp, group, mask);
    case InstructionKind::Trap:
      if (mask) return set_fault(KernelFault::Trap, &i, program), Step::Stop;
      warp.groups[group].pc++;
      return Step::Next;
    case InstructionKind::Yield:
      warp.groups[group].pc++;
      preempt(warp, warp.groups[group]);
      return Step::Stop;
    case InstructionKind::Barrier: return arrive(warp, group, i, mask);
    case InstructionKind::ConditionalBranch:
      return control_.branch(warp, group, mask & lanes_meeting_condition(i), static_cast<uint32_t>(i.imm));
    case InstructionKind::ConditionalExit: return exit_lanes(warp, group, mask & lanes_meeting_condition(i));
    case InstructionKind::ComputedBranch: return check_fault(control_.branch_computed(warp, group, i, mask));
    case InstructionKind::DivergenceBranch: return control_.branch_on_divergence(warp, group, i, mask);
    case InstructionKind::LeaveWarpSync: return leave_warp_sync(warp, group, i, mask);
    default: return synchronize_warp(warp, group, i, mask);
  }
}

Step Block::exit_lanes(Warp& warp, uint32_t group, uint32_t mask) {
  warp.convergence.exit_lanes(mask);
  live_threads_ -= count_lanes(mask);
  warp.groups[group].mask &= ~mask;
  warp.groups[group].pc++;
  const bool is_empty = warp.groups[group].mask == 0;
  if (is_empty) warp.remove_group(group);
  if (mask) {
    warp.recheck_warp_syncs();
    release_complete_barriers();
  }
  return is_empty || mask ? Step::Stop : Step::Next;
}

void Block::set_fault(KernelFault fault, const Instruction* i, const DecodedFunction* program) {
  result_.fault = fault;
  CodePosition position = i ? find_position(i->position) : CodePosition();
  if (position.function.empty()) position = {program->name, program->position_unit, i ? i->line : 0, {}};
  result_.message = std::string(describe(fault)) + " in " + position.function;
  if (i) result_.message += std::string(", ") + position.unit + " " + std::to_string(position.line);
  if (context_.fault != KernelFault::None) {
    char hex[32];
    snprintf(hex, sizeof hex, ", address 0x%llx", static_cast<unsigned long long>(context_.fault_address));
    result_.message += hex;
  }
}

}  // namespace vgpu
