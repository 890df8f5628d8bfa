// The accesses to each memory location form a sequence of phases: sets of accesses whose order among themselves does not matter.
// An access joins the current phase if a rule accepts it and it is after all of the previous phase in every schedule; it begins
// the next phase if it is after all of the current one in every schedule.  Then the sequence of phases is the same in every
// schedule, by induction: the same values are read, so the same code runs.  An access that does neither ends the proof.
#pragma once
#include <cstdint>

#include "core/memory_access.h"
#include "happens_before.h"
#include "rules/exact_sum.h"

namespace vgpu {

// Which accesses may form a phase.  UnchangedValue: reads, and writes of the value that is there.  WritesOfOneValue: writes of one
// value over another.  CommutingUpdates: updates of one family.  SingleAccess: one access that no other may join, such as an atomic
// whose old value is used.
enum class PhaseKind : uint8_t { UnchangedValue, WritesOfOneValue, CommutingUpdates, SingleAccess };

// Updates that commute with each other: the same operation, type, width, and word of an 8-byte value.
struct UpdateFamily {
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
  uint8_t bytes = 0;
  uint8_t offset : 7;
  bool block_scope : 1;  // atomic only for threads of one block
  bool operator==(const UpdateFamily& other) const {
    return operation == other.operation && type == other.type && bytes == other.bytes && offset == other.offset &&
           block_scope == other.block_scope;
  }
};

// One lane's access to one location.
struct LaneAccess {
  PhaseKind kind = PhaseKind::UnchangedValue;
  bool reads = false;  // and the program uses the value
  bool strong = false;  // atomic, volatile or ordered
  bool uses_old_value = false;  // of an atomic
  bool silent = false;  // does not change the value, which is initialized
  bool tracks_unwritten_bytes = false;  // registers track the unwritten bytes that it reads: to read them is no fault yet
  bool in_shared = false;  // to shared memory
  bool non_coherent = false;  // by a cache that is not coherent with writes of the launch
  UpdateFamily family = {};
  uint64_t operand = 0;  // of float sums and of bounded counters (inc, dec)
  uint32_t position = 0;  // of the code (Instruction::position)
};

// Small, as there are many: a line of memory with its phase fills one line of the processor's cache (shadow.h).
struct Phase {
  AccessorSummary current, previous;  // the accessors of this phase, and of the one before it
  uint32_t position : 27;  // of the code of the last access
  bool written : 1;  // whether the operation current.operation (a launch, copy or fill) has changed the value
  bool strong : 1;
  bool in_order : 1;  // whether each access is after the previous ones in every schedule
  PhaseKind kind : 2;
  Phase() : position(0), written(false), strong(false), in_order(true), kind(PhaseKind::UnchangedValue) {}
};

// What the updates of a phase have in common.
struct Updates {
  UpdateFamily family = {};
  uint64_t operand = 0;
  ExactSum sum = {};
};

// The phase of a word or a byte; that of a line has no updates.
struct WordPhase : Phase { Updates updates; };

// What proved an access.  UpdateLoop: a compare-and-swap loop counts as one update.  Exploration: all orders of the recorded
// accesses of a location were tried, and agree.
enum class Rule : uint8_t { UnchangedValue, WritesOfOneValue, CommutingUpdates, ExactSum, UpdateLoop, Exploration };
enum class UnprovedReason : uint8_t;

class PhaseObserver {
 public:
  virtual ~PhaseObserver() = default;
  virtual void on_unproved(UnprovedReason reason, uint32_t position, uint32_t other_position) = 0;
  virtual void on_rule(Rule rule) = 0;
};

class Phases {
 public:
  Phases(HappensBefore& order, PhaseObserver& observer) : order_(order), observer_(observer) {}
  // Adds an access to the phases of a location.  start: address of its current value, with which a float sum begins.
  void access(WordPhase& phase, const Accessor& now, const LaneAccess& access, const uint8_t* start) {
    add(phase, &phase.updates, now, access, start);
  }
  // The same for a line, which no access updates.  Returns whether the access begins the next phase.
  bool access(Phase& phase, const Accessor& now, const LaneAccess& access) { return add(phase, nullptr, now, access, nullptr); }
  // Whether the access begins the next phase even if it could join the current one.
  bool is_over(const Phase& phase, const Accessor& now, const LaneAccess& access);
  // Like access(), but faster: an update of a phase in which several blocks' updates are unordered, the most common case of
  // atomics.  Returns false, and does nothing, in other cases.
  bool join_unordered_updates(WordPhase& phase, const Accessor& now, const LaneAccess& access);

 private:
  // updates: nullptr for a line.
  bool add(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start);
  void join(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start);
  void add_update(const Phase& phase, Updates& updates, const LaneAccess& access, const uint8_t* start);
  void begin(Phase& phase, Updates* updates, const Accessor& now, const LaneAccess& access, const uint8_t* start);
  void conflict(Phase& phase, const Updates* updates, const Accessor& now, const LaneAccess& access);

  HappensBefore& order_;
  PhaseObserver& observer_;
};

}  // namespace vgpu
