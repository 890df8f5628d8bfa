// Branches, calls within a function, convergence barriers and the block's barriers.
//
// A convergence barrier is a register here: each lane's set of those that it waits for.  BSSY writes it, BSYNC is a WarpSync
// on it, BREAK takes lanes out.  It is kept per lane, for lanes that have parted use one barrier at the same time.
#include "operands.h"
#include "select.h"
#include "sm80/launch_bank.h"
#include "sm80/outside_functions.h"

namespace vgpu::sm80 {
namespace {

// Those that are here by chance are not waited for.
void set_barrier(WarpContext& warp, const Instruction& i) {
  const uint32_t members = warp.active_mask, *together = warp.convergence->together;
  write_words(warp, i.d, [=](uint32_t l) { return members & together[l]; });
}

// They come together, which orders no memory: nothing is to be done.
void meet(WarpContext&, const Instruction&) {}

void leave_barrier(WarpContext& warp, const Instruction& i) {
  uint32_t* sets = words(warp, i.d);
  const uint32_t leaving = warp.active_mask & read_predicate(warp, i.e);
  uint32_t members = 0;
  for_each_lane(leaving, [&](uint32_t l) { members |= sets[l]; });
  for_each_lane(members, [&](uint32_t l) { sets[l] &= ~leaving; });
}

template <bool kClears> void copy_barrier(WarpContext& warp, const Instruction& i) {
  uint32_t* from = words(warp, i.a);
  write_words(warp, i.d, [=](uint32_t l) { return from[l]; });
  if (kClears) for_each_lane(warp.active_mask, [=](uint32_t l) { from[l] = 0; });
}

void barrier_result(WarpContext& warp, const Instruction& i) {
  const uint32_t* counted = words(warp, i.a);
  write_words(warp, i.d, [=](uint32_t l) { return counted[l]; });
  write_predicate(warp, i.vector_registers[kFirstWritten], lanes_where([=](uint32_t l) { return counted[l] != 0; }));
}
void barrier_result_of_predicate(WarpContext& warp, const Instruction& i) {
  const uint32_t holds = predicate(warp, i.a);
  write_words(warp, i.d, [=](uint32_t l) { return holds >> l & 1; });
  write_predicate(warp, i.vector_registers[kFirstWritten], holds);
}

void load_place(WarpContext& warp, const Instruction& i) {
  const uint64_t place = i.line;
  write_pairs(warp, i.d, [=](uint32_t) { return place; });
}

// A condition is the guard where there is none; else both must hold, in an instruction of this kind.
bool add_condition(FunctionDecoder& d, const Decoded& c, Instruction& i, InstructionKind with_guard) {
  const uint32_t condition = c.bits(87, 4);
  if (condition == kPT) return true;
  const uint32_t read = d.read_predicate(condition), place = read & ~kNegated;
  const bool negated = (read & kNegated) != 0;
  if (i.guard < 0) return i.guard = static_cast<int32_t>(place), i.negated = negated, true;
  i.kind = with_guard, i.c = place, i.e = negated;
  return true;
}

}  // namespace

bool select_branch(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::Branch, i.imm = d.index_of(c.target);
  if (c.row->mnemonic != "BRA") return true;
  if (c.has("DIV") || c.has("CONV")) {
    i.kind = InstructionKind::DivergenceBranch, i.variant = c.has("CONV") ? kIfConverged : kIfDiverged;
    i.a = d.read_uniform(c.bits(24, 6)), i.e = c.bit(30);  // inverted: the lanes that it does not name
  }
  if (i.kind != InstructionKind::Branch) return c.bits(87, 4) == kPT;
  return add_condition(d, c, i, InstructionKind::ConditionalBranch);
}

bool select_computed_branch(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.kind = InstructionKind::ComputedBranch;
  i.a = c.row->mnemonic == "BRXU" ? d.read_uniform(c.bits(24, 6)) : d.read_register(c.bits(24, 8));
  i.imm = c.target, i.e = kEncodingBytes;
  return true;
}

bool select_call_outside(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  constexpr uint32_t kFirstArgument = 4;  // of the calling convention, and of the result
  i.kind = InstructionKind::SchedulingPoint, i.execute = call_outside;
  if (c.row->opcode == 0x343) i.a = d.read_register(c.bits(24, 8));
  else i.a = d.constant_pair((kOutsideBegin & ~kTargetMask) | c.encoding.bits(34, 47));
  i.b = i.d = d.written_register(kFirstArgument);
  return true;
}

bool select_load_place(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = load_place, true; }

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
  i.kind = InstructionKind::WarpSync, i.execute = meet;
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
  i.kind = InstructionKind::WarpSync;  // without a function of its own: what lanes did before is then done
  i.b = c.row->opcode == 0x348 ? d.read_register(c.bits(32, 8)) : d.constant(c.bits(32, 32));
  return true;
}

bool select_block_barrier(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const std::string_view mode = c.modifier(77);
  i.kind = InstructionKind::Barrier, i.count = 1;
  i.a = d.constant(c.bits(54, 4));
  i.variant = mode == "SYNC"       ? kBarrierSync
              : mode == "RED.POPC" ? kBarrierCount
              : mode == "RED.AND"  ? kBarrierAll
                                   : kBarrierAny;
  if (i.variant == kBarrierSync) return true;
  i.d = i.variant == kBarrierCount ? d.vote() : d.vote_predicate();
  i.c = i.e & ~kNegated, i.e = (i.e & kNegated) != 0;
  return true;
}

// Of the barrier before it.
bool select_barrier_result(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  bool counted = false;
  for (const Decoded& one : d.code()) {
    if (one.offset >= c.offset) break;
    const std::string_view mode = one.row->mnemonic == "BAR" ? one.modifier(77) : "";
    if (mode.substr(0, 3) == "RED") counted = mode == "RED.POPC";
  }
  i.a = counted ? d.vote() : d.vote_predicate();
  i.execute = counted ? barrier_result : barrier_result_of_predicate;
  return true;
}

}  // namespace vgpu::sm80
