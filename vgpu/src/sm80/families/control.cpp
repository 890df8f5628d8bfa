// Branches, calls within a function, convergence barriers and the block's barriers.
//
// A convergence barrier is a register with each lane's set of lanes that it waits for.  BSSY writes it, BSYNC is a WarpSync on it,
// BREAK removes lanes.  There is a set per lane because diverged lanes use the same barrier at the same time.
#include "operands.h"
#include "select.h"
#include "sm80/launch_bank.h"
#include "sm80/outside_functions.h"

namespace vgpu::sm80 {
namespace {

// Writes the set of active lanes that are converged in every schedule.
void set_barrier(WarpContext& warp, const Instruction& i) {
  const uint32_t members = warp.active_mask, *converged = warp.convergence->converged;
  write_lane_words(warp, i.d, [=](uint32_t l) { return members & converged[l]; });
}

// BSYNC reconverges lanes, but does not order memory, so nothing else is to be done.
void do_nothing(WarpContext&, const Instruction&) {}

void leave_barrier(WarpContext& warp, const Instruction& i) {
  uint32_t* sets = lane_words(warp, i.d);
  const uint32_t leaving = warp.active_mask & read_predicate(warp, i.e);
  uint32_t members = 0;
  for_each_lane(leaving, [&](uint32_t l) { members |= sets[l]; });
  for_each_lane(members, [&](uint32_t l) { sets[l] &= ~leaving; });
}

template <bool kClears> void copy_barrier(WarpContext& warp, const Instruction& i) {
  uint32_t* source = lane_words(warp, i.a);
  write_lane_words(warp, i.d, [=](uint32_t l) { return source[l]; });
  if (kClears) for_each_lane(warp.active_mask, [=](uint32_t l) { source[l] = 0; });
}

void barrier_result(WarpContext& warp, const Instruction& i) {
  const uint32_t* counted = lane_words(warp, i.a);
  write_lane_words(warp, i.d, [=](uint32_t l) { return counted[l]; });
  write_predicate(warp, i.vector_registers[kFirstWritten], lanes_where([=](uint32_t l) { return counted[l] != 0; }));
}
void barrier_result_of_predicate(WarpContext& warp, const Instruction& i) {
  const uint32_t vote = predicate(warp, i.a);
  write_lane_words(warp, i.d, [=](uint32_t l) { return vote >> l & 1; });
  write_predicate(warp, i.vector_registers[kFirstWritten], vote);
}

void load_program_counter(WarpContext& warp, const Instruction& i) {
  const uint64_t place = i.line;
  write_pairs(warp, i.d, [=](uint32_t) { return place; });
}

// Makes the condition the guard if there is none; otherwise the instruction, of kind `with_guard`, requires both.
bool add_condition(FunctionDecoder& d, const Decoded& c, Instruction& i, InstructionKind with_guard) {
  const uint32_t condition = c.bits(87, 4);
  if (condition == kPT) return true;
  const uint32_t read = d.read_predicate(condition), offset = read & ~kNegated;
  const bool negated = (read & kNegated) != 0;
  if (i.guard < 0) return i.guard = static_cast<int32_t>(offset), i.negated = negated, true;
  i.kind = with_guard, i.c = offset, i.e = negated;
  return true;
}

}  // namespace

bool select_branch(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::Branch, i.imm = d.index_of(c.target);
  if (c.row->mnemonic == "CALL.REL.NOINC") i.variant = kSubroutineCall;
  if (c.row->mnemonic != "BRA") return true;
  if (c.has("DIV") || c.has("CONV")) {
    i.kind = InstructionKind::DivergenceBranch, i.variant = c.has("CONV") ? kIfConverged : kIfDiverged;
    i.a = d.read_uniform(c.bits(24, 6)), i.e = c.bit(30);  // inverted: all other lanes
  }
  if (i.kind != InstructionKind::Branch) return c.bits(87, 4) == kPT;
  return add_condition(d, c, i, InstructionKind::ConditionalBranch);
}

bool select_computed_branch(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::ComputedBranch;
  if (c.row->mnemonic == "RET") i.variant = kSubroutineReturn;
  i.a = c.row->mnemonic == "BRXU" ? d.read_uniform(c.bits(24, 6)) : d.read_register(c.bits(24, 8));
  i.imm = c.target, i.e = kEncodingBytes;  // the target's index is (a + imm) / e
  return true;
}

static bool select_call_outside(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  constexpr uint32_t kFirstArgument = 4;  // register of the first argument and of the result, by the calling convention
  i.kind = InstructionKind::SchedulingPoint, i.execute = call_outside;
  if (c.row->opcode == 0x343) i.a = d.read_register(c.bits(24, 8));  // the address is in registers
  else i.a = d.constant_pair((kOutsideBegin & ~kTargetMask) | c.encoding.bits(34, 47));
  i.b = i.d = d.written_register(kFirstArgument);
  return true;
}

// Calls a function of the same code by its offset, or one outside of the module by its address, which is larger.
bool select_absolute_call(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const bool by_register = c.row->opcode == 0x343;
  if (by_register && d.has_callees()) return select_computed_branch(d, c, i);
  const uint64_t target = c.encoding.bits(34, 47);
  if (by_register || target >= kMaxCodeBytes) return select_call_outside(d, c, i);
  i.kind = InstructionKind::Branch, i.variant = kSubroutineCall, i.imm = d.index_of(static_cast<int64_t>(target));
  return true;
}

bool select_load_place(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = load_program_counter, true; }

bool select_exit(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::Exit;
  return add_condition(d, c, i, InstructionKind::ConditionalExit);
}

bool select_trap(FunctionDecoder&, const Decoded&, Instruction& i) { return i.kind = InstructionKind::Trap, true; }
bool select_sleep(FunctionDecoder&, const Decoded&, Instruction& i) { return i.kind = InstructionKind::Yield, true; }

bool select_set_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.d = d.convergence_barrier(c.bits(16, 4)), i.execute = set_barrier;
  return true;
}
bool select_wait_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::WarpSync, i.execute = do_nothing;
  i.b = d.convergence_barrier(c.bits(16, 4));
  return true;
}
bool select_leave_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::LeaveWarpSync, i.execute = leave_barrier;
  i.d = d.convergence_barrier(c.bits(16, 4));
  return true;
}
bool select_barrier_to_register(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.convergence_barrier(c.bits(24, 4));
  i.execute = c.has("CLEAR") ? copy_barrier<true> : copy_barrier<false>;
  return true;
}
bool select_register_to_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.d = d.convergence_barrier(c.bits(24, 4)), i.a = d.read_register(c.bits(32, 8)), i.execute = copy_barrier<false>;
  return !c.has("CLEAR");
}

bool select_warp_sync(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::WarpSync;  // without `execute`, it orders memory; opcode 0x348: the mask is in a register
  i.b = c.row->opcode == 0x348 ? d.read_register(c.bits(32, 8)) : d.constant(c.bits(32, 32));
  i.variant = c.has("EXCLUSIVE") ? kExclusive : kWithOthers;
  return true;
}

bool select_block_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  constexpr uint16_t kRegisterNumber = 0x51d, kRegisterThreads = 0x91d, kBoth = 0x31d;  // opcodes: what the register holds
  const std::string_view mode = c.modifier(77);
  const uint16_t opcode = c.row->opcode;
  const uint32_t threads = c.bits(42, 12);
  i.kind = InstructionKind::Barrier;
  i.a = opcode == kRegisterNumber || opcode == kBoth ? d.read_register(c.bits(32, 8)) : d.constant(c.bits(54, 4));
  if (opcode == kRegisterThreads) i.b = d.read_register(c.bits(32, 8));
  else if (threads) i.b = d.constant(threads);
  i.count = opcode == kBoth ? kNumberAndThreads : opcode == kRegisterThreads || threads ? kSomeThreads : kAllThreads;
  i.variant = mode == "SYNC"       ? kBarrierSync
              : mode == "ARV"      ? kBarrierArrive
              : mode == "RED.POPC" ? kBarrierCount
              : mode == "RED.AND"  ? kBarrierAll
                                   : kBarrierAny;
  if (i.variant == kBarrierSync || i.variant == kBarrierArrive) return true;
  i.d = i.variant == kBarrierCount ? d.vote() : d.vote_predicate();
  i.c = i.e & ~kNegated, i.e = (i.e & kNegated) != 0;
  return true;
}

// Reads the result of the last barrier with a vote before this instruction.
bool select_barrier_result(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  bool counted = false;
  for (const Decoded& earlier : d.code()) {
    if (earlier.offset >= c.offset) break;
    const std::string_view mode = earlier.row->mnemonic == "BAR" ? earlier.modifier(77) : "";
    if (mode.substr(0, 3) == "RED") counted = mode == "RED.POPC";
  }
  i.a = counted ? d.vote() : d.vote_predicate();
  i.execute = counted ? barrier_result : barrier_result_of_predicate;
  return true;
}

}  // namespace vgpu::sm80
