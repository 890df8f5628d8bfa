// Lets an access join the current phase of its location, begins the next phase, or reports a conflict; phase.h explains phases.
// A silent access leaves the value unchanged; a strong one is atomic, volatile or ordered.  An operation is one unit of
// work of a stream, such as a launch or a copy.
#include "phase.h"

#include "rules/commuting_updates.h"
#include "rules/unchanged_value.h"
#include "rules/writes_of_one_value.h"
#include "unproved_reason.h"

namespace vgpu {
namespace {

bool may_join(const Phase& phase, const Accessor& now, const LaneAccess& access) {
  if (phase.current.extent == AccessorSummary::None) return false;  // there was no access yet
  switch (phase.kind) {
    case PhaseKind::UnchangedValue: return joins_unchanged_value(access);
    case PhaseKind::WritesOfOneValue: return joins_writes_of_one_value(phase, now, access);
    case PhaseKind::CommutingUpdates: return joins_commuting_updates(phase, access);
    case PhaseKind::SingleAccess: return false;
  }
  return false;
}

// Returns the kind of the phase that the access begins.  A silent update counts as an update, since others may follow it.
PhaseKind kind_of_phase(const LaneAccess& access) {
  return access.silent && access.kind != PhaseKind::CommutingUpdates ? PhaseKind::UnchangedValue : access.kind;
}

}  // namespace

void Phases::access(Phase& phase, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  if (access.non_coherent && phase.written_by == now.operation)
    observer_.on_unproved(UnprovedReason::StaleRead, access.line, phase.line);
  if (!is_over(phase, now, access) && may_join(phase, now, access) && order_.is_before(phase.previous, now))
    return join(phase, now, access, start);
  if (order_.is_before(phase.current, now)) return begin(phase, now, access, start);
  conflict(phase, now, access);
}

// If an access can both join and begin a phase, it joins: otherwise a thread's second update would separate its first from another
// thread's.  Phases of earlier operations are over, and in shared memory those before the last barrier; and an update does not join
// a phase of reads.
bool Phases::is_over(const Phase& phase, const Accessor& now, const LaneAccess& access) {
  const bool ended = phase.current.operation != now.operation || (access.in_shared && phase.current.epoch < now.epoch) ||
                     (phase.kind == PhaseKind::UnchangedValue && access.kind == PhaseKind::CommutingUpdates);
  return ended && order_.is_before(phase.current, now);
}

bool Phases::join_unordered_updates(Phase& phase, const Accessor& now, const LaneAccess& access) {
  // Another accessor changes nothing about the extent Grid.
  const bool is_unordered = phase.kind == PhaseKind::CommutingUpdates && !phase.in_order &&
                            phase.current.extent == AccessorSummary::Grid && phase.current.operation == now.operation;
  if (!is_unordered || !joins_commuting_updates(phase, access) || !order_.is_before(phase.previous, now)) return false;
  add_update(phase, access, nullptr);
  phase.line = access.line, phase.strong = phase.strong && access.strong;
  return true;
}

void Phases::add_update(Phase& phase, const LaneAccess& access, const uint8_t* start) {
  if (!is_float_sum(access.family)) {
    if (!phase.in_order) observer_.on_rule(Rule::CommutingUpdates);
    return;
  }
  const bool is_exact = phase.sum.add(access.operand, access.family.type, start);
  if (phase.in_order) return;
  if (!is_exact) observer_.on_unproved(UnprovedReason::Rounding, phase.line, access.line);
  observer_.on_rule(Rule::ExactSum);
}

void Phases::join(Phase& phase, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  phase.in_order = phase.in_order && order_.is_before(phase.current, now);
  if (phase.kind == PhaseKind::CommutingUpdates) {
    add_update(phase, access, start);
  } else if (!phase.in_order) {
    if (phase.kind == PhaseKind::WritesOfOneValue) observer_.on_rule(Rule::WritesOfOneValue);
    if (phase.kind == PhaseKind::UnchangedValue && access.silent) observer_.on_rule(Rule::UnchangedValue);
  }
  order_.add(phase.current, now);
  phase.line = access.line, phase.strong = phase.strong && access.strong;
  if (phase.kind != PhaseKind::UnchangedValue) phase.written_by = now.operation;
}

void Phases::begin(Phase& phase, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  phase.previous = phase.current;
  phase.current = HappensBefore::single(now);
  phase.kind = kind_of_phase(access);
  phase.family = access.family, phase.operand = access.operand;
  phase.line = access.line, phase.strong = access.strong, phase.in_order = true;
  phase.sum = ExactSum(), phase.silent_words = 0;
  if (phase.kind == PhaseKind::CommutingUpdates && is_float_sum(access.family))
    phase.sum.add(access.operand, access.family.type, start);
  if (phase.kind != PhaseKind::UnchangedValue) phase.written_by = now.operation;
}

void Phases::conflict(Phase& phase, const Accessor& now, const LaneAccess& access) {
  const bool is_alone = access.kind == PhaseKind::SingleAccess || phase.kind == PhaseKind::SingleAccess;
  const UnprovedReason reason = !phase.strong || !access.strong ? UnprovedReason::Race
                                : is_alone                      ? UnprovedReason::OldValue
                                                                : UnprovedReason::MemoryOrder;
  observer_.on_unproved(reason, phase.line, access.line);
  // All further accesses of this operation conflict, too.
  phase.current = order_.unite(phase.current, HappensBefore::single(now));
  phase.current.extent = AccessorSummary::Grid, phase.kind = PhaseKind::SingleAccess;
  phase.line = access.line, phase.strong = phase.strong && access.strong;
  if (access.kind != PhaseKind::UnchangedValue) phase.written_by = now.operation;
}

}  // namespace vgpu
