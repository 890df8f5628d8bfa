// Lets an access join the phase of its word, or begins the next phase.
#include "phase.h"

#include "reason.h"
#include "rules/commuting.h"
#include "rules/one_value.h"
#include "rules/same_value.h"

namespace vgpu {
namespace {

bool may_join(const Phase& phase, const Accessor& now, const PlaceAccess& access) {
  if (phase.now.extent == Accessors::None) return false;
  switch (phase.kind) {
    case PhaseKind::Same: return joins_same_value(access);
    case PhaseKind::Written: return joins_one_value(phase, now, access);
    case PhaseKind::Commuting: return joins_commuting(phase, access);
    case PhaseKind::Alone: return false;
  }
  return false;
}

// An update that happens to change nothing is still one of its family, for others may come that do.
PhaseKind kind_begun_by(const PlaceAccess& access) {
  return access.silent && access.kind != PhaseKind::Commuting ? PhaseKind::Same : access.kind;
}

}  // namespace

void Phases::access(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start) {
  if (access.non_coherent && phase.written_by == now.operation)
    observer_.on_unproved(Reason::StaleRead, access.line, phase.line);
  const bool begins = order_.is_before(phase.now, now);
  // Where it can do both it joins, so that a thread's second update does not part its first from another thread's; but what
  // another operation did is over, and a silent update is of no use among reads.
  const bool over = begins && (phase.now.operation != now.operation ||
                               (phase.kind == PhaseKind::Same && access.kind == PhaseKind::Commuting));
  if (!over && may_join(phase, now, access) && order_.is_before(phase.before, now)) return join(phase, now, access, start);
  if (begins) return begin(phase, now, access, start);
  conflict(phase, now, access);
}

void Phases::join(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start) {
  phase.in_order = phase.in_order && order_.is_before(phase.now, now);
  if (phase.kind == PhaseKind::Commuting && is_float_sum(access.family)) {
    const bool exact = phase.sum.add(access.operand, access.family.type, start);
    if (!phase.in_order && !exact) observer_.on_unproved(Reason::Rounding, phase.line, access.line);
    if (!phase.in_order) observer_.on_rule(Rule::ExactSum);
  } else if (!phase.in_order) {
    if (phase.kind == PhaseKind::Commuting) observer_.on_rule(Rule::Commuting);
    if (phase.kind == PhaseKind::Written) observer_.on_rule(Rule::OneValue);
    if (phase.kind == PhaseKind::Same && access.silent) observer_.on_rule(Rule::SameValue);
  }
  order_.add(phase.now, now);
  phase.line = access.line, phase.strong = phase.strong && access.strong;
  if (phase.kind != PhaseKind::Same) phase.written_by = now.operation;
}

void Phases::begin(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start) {
  phase.before = phase.now;
  phase.now = HappensBefore::one(now);
  phase.kind = kind_begun_by(access);
  phase.family = access.family, phase.operand = access.operand;
  phase.line = access.line, phase.strong = access.strong, phase.in_order = true;
  phase.sum = ExactSum();
  if (phase.kind == PhaseKind::Commuting && is_float_sum(access.family))
    phase.sum.add(access.operand, access.family.type, start);
  if (phase.kind != PhaseKind::Same) phase.written_by = now.operation;
}

void Phases::conflict(Phase& phase, const Accessor& now, const PlaceAccess& access) {
  const bool alone = access.kind == PhaseKind::Alone || phase.kind == PhaseKind::Alone;
  const Reason reason = !phase.strong || !access.strong ? Reason::Race : alone ? Reason::OldValue : Reason::MemoryOrder;
  observer_.on_unproved(reason, phase.line, access.line);
  // Whoever else comes in this operation conflicts as well.
  phase.now = order_.unite(phase.now, HappensBefore::one(now));
  phase.now.extent = Accessors::Grid, phase.kind = PhaseKind::Alone;
  phase.line = access.line, phase.strong = phase.strong && access.strong;
  if (access.kind != PhaseKind::Same) phase.written_by = now.operation;
}

}  // namespace vgpu
