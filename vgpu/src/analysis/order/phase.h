// A place of memory lives through phases: sets of accesses that may come in any order among themselves.  An access joins the
// phase that there is, if a rule lets it and it comes after all of the phase before, or it begins the next one, if it comes
// after all of this one, in every schedule.  Then the sequence of phases is the same in every schedule, by induction over it:
// the same values are read, so the same code runs.  Whatever does neither ends the proof.
#pragma once
#include <cstdint>

#include "core/memory_access.h"
#include "happens_before.h"
#include "rules/exact_sum.h"

namespace vgpu {

// Same: reads, and writes of the value that is there.  Written: writes of one other value.  Commuting: updates of one family.
// Alone: one access, whatever it is.
enum class PhaseKind : uint8_t { Same, Written, Commuting, Alone };

// Updates that commute with each other: of one operation, type and width, and of one half of a value of 8 bytes.
struct UpdateFamily {
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
  uint8_t bytes = 0, offset = 0;
  bool operator==(const UpdateFamily& o) const {
    return operation == o.operation && type == o.type && bytes == o.bytes && offset == o.offset;
  }
};

// One lane's access to one place.
struct PlaceAccess {
  PhaseKind kind = PhaseKind::Same;
  bool reads = false;       // and somebody uses what it reads
  bool strong = false;      // atomic, volatile or ordered
  bool silent = false;      // leaves what is there, which was written before
  bool non_coherent = false;  // by way of a cache that does not see what the launch writes
  UpdateFamily family = {};
  uint64_t operand = 0;  // of sums of floats and of counters with a bound
  uint32_t line = 0;
};

struct Phase {
  Accessors now, before;
  PhaseKind kind = PhaseKind::Same;
  bool strong = false;
  bool in_order = true;  // each access came after those before it
  UpdateFamily family = {};
  uint32_t line = 0;     // of the last access
  uint64_t operand = 0;
  ExactSum sum = {};
  StreamOrder::Operation written_by = 0;  // the last that was not silent
};

enum class Rule : uint8_t { SameValue, OneValue, Commuting, ExactSum, UpdateLoop };
enum class Reason : uint8_t;

class PhaseObserver {
 public:
  virtual ~PhaseObserver() = default;
  virtual void on_unproved(Reason reason, uint32_t line, uint32_t other_line) = 0;
  virtual void on_rule(Rule rule) = 0;
};

class Phases {
 public:
  Phases(HappensBefore& order, PhaseObserver& observer) : order_(order), observer_(observer) {}
  // start: the value of the place, as a sum of floats begins with it.
  void access(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start);

 private:
  void join(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start);
  void begin(Phase& phase, const Accessor& now, const PlaceAccess& access, const uint8_t* start);
  void conflict(Phase& phase, const Accessor& now, const PlaceAccess& access);

  HappensBefore& order_;
  PhaseObserver& observer_;
};

}  // namespace vgpu
