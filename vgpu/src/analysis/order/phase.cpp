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

bool is_of_block(const AccessorSummary& accessors, const Accessor& now) {
  return accessors.operation == now.operation && accessors.extent != AccessorSummary::Grid && accessors.block == now.block;
}

bool may_join(const Phase& phase, const Updates* updates, const Accessor& now, const LaneAccess& access) {
  if (phase.current.extent == AccessorSummary::None) return false;  // there was no access yet
  switch (phase.kind) {
    case PhaseKind::UnchangedValue: return joins_unchanged_value(access);
    case PhaseKind::WritesOfOneValue: return joins_writes_of_one_value(phase, now, access);
    case PhaseKind::CommutingUpdates:
      return updates && joins_commuting_updates(*updates, access) &&
             (!access.family.block_scope || is_of_block(phase.current, now));
    case PhaseKind::SingleAccess: return false;
  }
  return false;
}

// Returns the kind of the phase that the access begins.  A silent update counts as an update, since others may follow it.
PhaseKind kind_of_phase(const LaneAccess& access) {
  return access.silent && access.kind != PhaseKind::CommutingUpdates ? PhaseKind::UnchangedValue : access.kind;
}

// Whether the current operation has changed the value.
bool is_written_by(const Phase& phase, StreamOrder::Operation operation) {
  return phase.written && phase.current.operation == operation;
}

}  // namespace

bool Phases::add(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  if (access.non_coherent && is_written_by(phase, now.operation))
    observer_.on_unproved(UnprovedReason::StaleRead, access.position, phase.position);
  if (!is_over(phase, now, access) && may_join(phase, updates, now, access) && order_.is_before(phase.previous, now))
    return join(phase, updates, now, access, start), false;
  if (order_.is_before(phase.current, now)) return begin(phase, updates, now, access, start), true;
  return conflict(phase, updates, now, access), false;
}

// If an access can both join and begin a phase, it joins: otherwise a thread's second update would separate its first from another
// thread's.  Phases of earlier operations are over, and in shared memory those before the last barrier; and an update does not join
// a phase of reads.
bool Phases::is_over(const Phase& phase, const Accessor& now, const LaneAccess& access) {
  const bool ended = phase.current.operation != now.operation || (access.in_shared && phase.current.epoch < now.epoch) ||
                     (phase.kind == PhaseKind::UnchangedValue && access.kind == PhaseKind::CommutingUpdates);
  return ended && order_.is_before(phase.current, now);
}

bool Phases::join_unordered_updates(WordPhase& phase, const Accessor& now, const LaneAccess& access) {
  // Another accessor changes nothing about the extent Grid.
  const bool is_unordered = phase.kind == PhaseKind::CommutingUpdates && !phase.in_order &&
                            phase.current.extent == AccessorSummary::Grid && phase.current.operation == now.operation;
  if (!is_unordered || access.family.block_scope || !joins_commuting_updates(phase.updates, access) ||
      !order_.is_before(phase.previous, now))
    return false;
  add_update(phase, phase.updates, access, nullptr);
  phase.position = access.position, phase.strong = phase.strong && access.strong;
  return true;
}

void Phases::add_update(const Phase& phase, Updates& updates, const LaneAccess& access, const uint8_t* start) {
  if (!is_float_sum(access.family)) {
    if (!phase.in_order) observer_.on_rule(Rule::CommutingUpdates);
    return;
  }
  const bool is_exact = updates.sum.add(access.operand, access.family.type, start);
  if (phase.in_order) return;
  if (!is_exact) observer_.on_unproved(UnprovedReason::Rounding, phase.position, access.position);
  observer_.on_rule(Rule::ExactSum);
}

void Phases::join(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  phase.in_order = phase.in_order && order_.is_before(phase.current, now);
  if (phase.kind == PhaseKind::CommutingUpdates) {
    add_update(phase, *updates, access, start);
  } else if (!phase.in_order) {
    if (phase.kind == PhaseKind::WritesOfOneValue) observer_.on_rule(Rule::WritesOfOneValue);
    if (phase.kind == PhaseKind::UnchangedValue && access.silent) observer_.on_rule(Rule::UnchangedValue);
  }
  const bool was_written = is_written_by(phase, now.operation);
  order_.add(phase.current, now);
  phase.position = access.position, phase.strong = phase.strong && access.strong;
  phase.written = phase.kind != PhaseKind::UnchangedValue || was_written;
}

void Phases::begin(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
  const PhaseKind kind = kind_of_phase(access);
  phase.written = kind != PhaseKind::UnchangedValue || is_written_by(phase, now.operation);
  phase.previous = phase.current;
  phase.current = HappensBefore::single(now);
  phase.kind = kind, phase.position = access.position, phase.strong = access.strong, phase.in_order = true;
  if (!updates) return;
  *updates = {access.family, access.operand, ExactSum()};
  if (kind == PhaseKind::CommutingUpdates && is_float_sum(access.family))
    updates->sum.add(access.operand, access.family.type, start);
}

void Phases::conflict(Phase& phase, const Updates* updates, const Accessor& now, const LaneAccess& access) {
  const bool is_alone = access.kind == PhaseKind::SingleAccess || phase.kind == PhaseKind::SingleAccess;
  const bool is_half_sum = access.family.type == ValueType::Half && !access.uses_old_value;
  const bool has_block_scope =
      access.family.block_scope || (updates && phase.kind != PhaseKind::UnchangedValue && updates->family.block_scope);
  const bool is_out_of_scope = has_block_scope && !is_of_block(phase.current, now);
  const UnprovedReason reason = is_out_of_scope                   ? UnprovedReason::Scope
                                : !phase.strong || !access.strong ? UnprovedReason::Race
                                : is_alone && is_half_sum         ? UnprovedReason::HalfSum
                                : is_alone                        ? UnprovedReason::OldValue
                                                                  : UnprovedReason::MemoryOrder;
  observer_.on_unproved(reason, phase.position, access.position);
  const bool was_written = is_written_by(phase, now.operation);
  // All further accesses of this operation conflict, too.
  phase.current = order_.unite(phase.current, HappensBefore::single(now));
  phase.current.extent = AccessorSummary::Grid, phase.kind = PhaseKind::SingleAccess;
  phase.position = access.position, phase.strong = phase.strong && access.strong;
  phase.written = access.kind != PhaseKind::UnchangedValue || was_written;
}

}  // namespace vgpu
