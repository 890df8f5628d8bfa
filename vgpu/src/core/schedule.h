// The order in which blocks, warps and lanes come: chosen by a kind and a seed, the same on every machine.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "split_mix.h"

namespace vgpu {

class Schedule {
 public:
  enum class Kind : uint8_t { Serial, Reverse, Random, Adversary, Exchange, Lanes, Atomics, Pct };

  // `serial`, `reverse`, `random:SEED`, `adversary:SEED`, `exchange`, where each choice lets the second of two neighbours
  // go first, `lanes`, the same for the lanes of an atomic alone, or `atomics:SEED`, where each lane's atomic may let others
  // at its address go first, or `pct:SEED,DEPTH`, where the warp with the highest of random priorities goes, and DEPTH - 1
  // places in the launch lower that of the warp that comes to them (Burckhardt, Kothari, Musuvathi and Nagarakatte 2010);
  // std::invalid_argument for anything else.  Behind all but the first two,
  // `@LAUNCH:FROM-TO,...`: only these choices of these launches are its own, all others are `serial`'s.
  static Schedule parse(const std::string& text);
  Schedule(Kind kind, uint64_t seed, uint32_t depth = 1) : kind_(kind), seed_(seed), random_(seed), depth_(depth) {}

  // What is drawn in a launch depends on its number alone, not on what came before.
  void begin_launch(uint64_t launch);

  Kind kind() const { return kind_; }
  bool is_fixed_order() const { return kind_ == Kind::Serial || kind_ == Kind::Reverse; }

  uint64_t choices() const { return choice_count_; }  // in this launch so far

  std::vector<uint32_t> block_order(uint32_t blocks, uint32_t warps);  // warps: of each block
  uint32_t max_resident_blocks() const { return runs_blocks_in_order() ? 1 : kind_ == Kind::Pct ? 16 : 4; }  // in flight
  uint32_t choose_index(uint32_t among);                        // 0 the first, in the order of their numbers
  // The same where each has a priority, priority(k), as far as this schedule goes by these.
  template <class F> uint32_t choose_index(uint32_t among, F priority);
  bool should_preempt(uint32_t block, uint32_t warp);           // before what others can see
  uint64_t priority(uint32_t block, uint32_t warp) const;       // never 0
  bool defers_atomics() const { return kind_ == Kind::Atomics; }
  bool should_defer_atomic();  // does an atomic let another one at its address go first?
  bool should_run_divergent();  // does another group of a warp go than the one that is behind?
  uint32_t multiprocessor_of(uint32_t block, uint32_t among) const;  // on which it runs; no choice of `@`
  uint32_t permute_lanes(uint32_t mask, uint8_t order[32]);
  float event_milliseconds();  // between two events: what an auto-tuner gets to see

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // from, to

  void parse_choice_ranges(const std::string& text);
  bool is_choice_enabled();  // is the next choice the seed's?
  uint32_t choose(uint32_t among, uint32_t default_choice);
  template <class T> void shuffle(T* order, uint32_t count);
  bool runs_blocks_in_order() const {
    return is_fixed_order() || kind_ == Kind::Lanes || kind_ == Kind::Atomics;
  }  // blocks and warps
  bool is_random() const { return kind_ == Kind::Random || kind_ == Kind::Adversary || kind_ == Kind::Pct; }
  void sort_by_priority(std::vector<uint32_t>& blocks, uint32_t warps) const;
  void draw_change_points();
  bool lowers_priority(uint32_t block, uint32_t warp);

  Kind kind_;
  uint64_t seed_, launch_seed_ = 0;
  SplitMix64 random_;
  uint32_t depth_;
  std::vector<uint64_t> change_points_;  // visible operations of this launch, the last first
  uint64_t visible_operations_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> lowered_;  // (block, warp): its priority now
  uint64_t choice_count_ = 0;
  bool all_enabled_ = true;
  std::map<uint64_t, Ranges> enabled_ranges_;  // of each launch
  const Ranges* current_ranges_ = nullptr;  // of this one
};

template <class F> uint32_t Schedule::choose_index(uint32_t among, F priority) {
  if (kind_ != Kind::Pct) return choose_index(among);
  if (!is_choice_enabled()) return 0;
  uint32_t best = 0;
  for (uint32_t k = 1; k < among; k++)
    if (priority(k) > priority(best)) best = k;
  return best;
}

}  // namespace vgpu
