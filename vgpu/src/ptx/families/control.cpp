// Branches, the block's barriers, and instructions that only order memory.
#include "call.h"
#include "core/instruction_set.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// Accesses are made in order here, except for atomics that are deferred: those take effect now.
void fence(WarpContext& warp, const Instruction&) {
  if (warp.deferred) warp.deferred->settle(*warp.deferrals, warp.active_mask);
  if (warp.observer) warp.observer->on_fence(warp);
}

void do_nothing(WarpContext&, const Instruction&) {}

// Whether a literal is above `max` or not a multiple of `multiple`.  There are 16 barriers, and whole warps arrive at them.
bool is_literal_out_of_range(const Decoder& d, const Operand& o, uint64_t max, uint64_t multiple) {
  if (o.kind != Operand::Literal) return false;
  uint64_t value = d.bits(o, "u32");
  return value > max || value % multiple;
}

bool is_zero(const Decoder& d, const Operand& o) { return o.kind == Operand::Literal && d.bits(o, "u32") == 0; }

BarrierMode mode_of(const Statement& s) {
  if (!s.has("red")) return s.has("arrive") ? kBarrierArrive : kBarrierSync;
  return s.has("popc") ? kBarrierCount : s.has("and") ? kBarrierAll : kBarrierAny;
}

bool decode_barrier(Decoder& d, const Statement& s, Instruction& i) {
  if (s.has("warp")) {
    if (!s.allows_only({"warp", "sync"}, /*types=*/0) || s.operands.size() != 1) return false;
    i.kind = InstructionKind::WarpSync;
    i.b = d.source(s.operands.at(0), "u32");
    d.emit(i);
    return true;
  }
  bool reduces = s.has("red");
  if (!s.allows_only({"sync|arrive|red", "cta", "aligned", "popc|and|or"}, reduces)) return false;
  if (s.has("cta") && s.qualifiers[0] != "cta") return false;
  if (!s.has("sync") && s.qualifiers[s.has("cta") ? 1 : 0] == "aligned") return false;  // arrive and red precede it
  if (s.qualifier_of("sync|arrive|red").empty() || s.qualifier_of("popc|and|or").empty() == reduces) return false;
  size_t k = 0;
  i.kind = InstructionKind::Barrier;
  i.variant = mode_of(s);
  if (reduces) i.d = i.variant == kBarrierCount ? d.result(s.operands.at(k++), "u32") : d.predicate_result(s.operands.at(k++));
  if (s.operands.size() <= k) return false;
  if (is_literal_out_of_range(d, s.operands[k], 15, 1)) return false;
  i.a = d.source(s.operands[k++], "u32");
  size_t remaining = s.operands.size() - k;
  i.count = kAllThreads;
  const bool has_thread_count = remaining == (reduces ? 2u : 1u);
  if (has_thread_count && is_literal_out_of_range(d, s.operands[k], UINT64_MAX, kWarpSize)) return false;
  if (has_thread_count && i.variant == kBarrierArrive && is_zero(d, s.operands[k])) return false;
  if (has_thread_count) i.b = d.source(s.operands[k++], "u32"), i.count = kSomeThreads;
  if (reduces) i.c = d.predicate(s.operands.at(k));
  d.emit(i);
  return true;
}

bool has_known_qualifiers(const Statement& s) {
  if (s.op == "griddepcontrol") return s.allows_only({"launch_dependents|wait"}, /*types=*/0);
  if (s.op == "pmevent") return s.allows_only({"mask"}, /*types=*/0);
  return s.allows_only({"gl|cta|gpu|sys|cluster", "sc|acq_rel|acquire|release|mbarrier_init", "proxy",
                        "alias|async|async::generic|async.global|tensormap::generic", "global|shared::cta|shared::cluster"},
                       0);
}

InstructionKind kind_of(std::string_view op) {
  if (op == "ret") return InstructionKind::Return;
  if (op == "exit") return InstructionKind::Exit;
  return op == "nanosleep" ? InstructionKind::Yield : InstructionKind::Trap;
}

bool decode_fence(Decoder& d, const Statement& s, Instruction& i) {
  if (!has_known_qualifiers(s)) return false;
  if (s.op == "pmevent" && (s.operands.at(0).kind != Operand::Literal || (!s.has("mask") && d.bits(s.operands[0], "u32") > 15)))
    return false;
  if (s.op == "membar" || s.op == "fence") i.execute = fence, d.emit(i);
  if (s.op == "griddepcontrol") i.execute = do_nothing, i.schedule_source = ScheduleSource::DependentLaunch, d.emit(i);
  return true;
}

bool decode_branch(Decoder& d, const Statement& s, Instruction& i) {
  if (s.operands.size() != (s.op == "bra" ? 1u : 2u)) return false;
  if (s.op == "bra") {
    i.kind = InstructionKind::Branch;
    d.jump(i, s.operands[0].text);
    return true;
  }
  i.kind = InstructionKind::IndexedBranch;
  i.a = d.source(s.operands[0], "u32");
  i.imm = d.branch_table(s.operands[1].text);
  d.emit(i);
  return true;
}

}  // namespace

bool decode_control(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "membar" || s.op == "fence" || s.op == "pmevent" || s.op == "griddepcontrol") return decode_fence(d, s, i);
  if (s.op == "bar" || s.op == "barrier") return decode_barrier(d, s, i);
  if (!s.allows_only({"uni", "idx"}, s.op == "nanosleep") || (s.op == "brx") != s.has("idx")) return false;
  if (s.op == "bra" || s.op == "brx") return decode_branch(d, s, i);
  if (s.op == "nanosleep") d.source(s.operands.at(0), "u32");
  if (s.op == "ret") store_results(d, i);
  i.kind = kind_of(s.op);
  d.emit(i);
  return true;
}

}  // namespace vgpu
