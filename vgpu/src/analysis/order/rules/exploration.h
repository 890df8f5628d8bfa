// Rule 6, exploration: all orders of the few accesses of a small launch to one location.
//
// What it accepts: accesses to 8 bytes of memory, unordered ones among them, if each value that the program uses, and the bytes at
// the end, are the same in every order that happens-before leaves open.  Unordered accesses that conflict must be of the same bytes,
// and an atomic among them with atomic or volatile ones: the effect of others is undefined.  Why that is sound: the first use of
// another value would follow accesses that are those of the observed run, in an order that was explored.
// Example: each of two threads stores 1 and then 0; whoever is last, 0 remains.
#pragma once
#include <cstdint>
#include <vector>

#include "../happens_before.h"
#include "core/memory_access.h"

namespace vgpu {

constexpr uint32_t kLocationBytes = 8;

// The bytes of a location, and which of them are written.
struct LocationState {
  uint64_t value = 0;
  uint8_t written = 0;  // a bit for each byte
  bool operator<(const LocationState& other) const {
    return value != other.value ? value < other.value : written < other.written;
  }
  bool operator==(const LocationState& other) const { return value == other.value && written == other.written; }
};

// One access of the observed run to a location.
struct RecordedAccess {
  uint8_t offset = 0, bytes = 0;
  AccessKind kind = AccessKind::Read;
  bool value_is_used = false;  // the program uses what it reads
  bool strong = false;  // atomic, volatile or ordered
  bool in_shared = false;
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
  uint64_t operand = 0, expected = 0;  // of a write the value; expected: of a compare-and-swap
  uint32_t predecessors = 0;  // the accesses that precede it in every schedule: a bit for each
  AccessorSummary accessor;

  uint64_t value_in(const LocationState& state) const;
  bool is_written_in(const LocationState& state) const;
  LocationState perform(const LocationState& state) const;
};

bool can_perform(const RecordedAccess& access);  // whether the operation is one of those that are known
// Returns whether every order of the accesses, which are given in the order of the run, agrees with the run.
bool all_orders_agree(const LocationState& initial, const std::vector<RecordedAccess>& accesses);

}  // namespace vgpu
