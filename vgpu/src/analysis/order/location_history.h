// The histories of the locations of a small launch: their accesses, whose orders rules/exploration.h explores, and the conflicts of
// unordered accesses.  These end the proof that the launch is independent of the schedule, unless all orders agree.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "findings.h"
#include "happens_before.h"
#include "rules/exploration.h"

namespace vgpu {

// The number of 8 bytes of memory.  space: 0 for global memory, otherwise the number of the block, plus 1.
struct LocationNumber {
  uint32_t space = 0;
  uint64_t number = 0;
  bool operator<(const LocationNumber& other) const { return std::tie(space, number) < std::tie(other.space, other.number); }
};

class LocationHistories {
 public:
  explicit LocationHistories(HappensBefore& order) : order_(order) {}

  void begin_launch(bool is_small);
  bool are_kept() const { return are_kept_; }  // false also after too many accesses
  // Adds an access.  state: of the location before it, used if it is the first one; now: its thread.  An unknown operation, or too
  // many accesses of the location, make its history useless.  The compare-and-swap of an update loop (is_loop) is its update, if it
  // succeeds.
  void add(LocationNumber location, const LocationState& state, RecordedAccess access, const Accessor& now, bool is_loop);
  // Keeps a conflict at a location until the launch ends.  Returns false if its history is not kept.
  bool keep_conflict(LocationNumber location, const char* reason, uint32_t position, uint32_t other_position);
  // Explores the locations that have conflicts, and adds the conflicts of those whose orders do not agree.
  void end_launch(Findings& findings);

 private:
  static constexpr size_t kMaxAccesses = 16;  // of a location
  static constexpr size_t kMaxAccessesOfLaunch = 8192;
  struct History {
    LocationState initial, current;
    std::vector<RecordedAccess> accesses;
    bool is_complete = true;
    std::map<std::tuple<const char*, uint32_t, uint32_t>, uint64_t> conflicts;  // to the number of times
  };

  HappensBefore& order_;
  bool are_kept_ = false;
  size_t accesses_ = 0;
  std::map<LocationNumber, History> histories_;
};

}  // namespace vgpu
