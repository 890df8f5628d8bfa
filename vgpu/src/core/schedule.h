// The order in which blocks, warps and lanes execute.  A kind and a seed determine it, on every machine.
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

  // Parses a schedule; throws std::invalid_argument if the text is none of these:
  // - serial, reverse;
  // - random:SEED and adversary:SEED: decisions are drawn; random preempts warps before about half of their visible operations,
  //   whose effect other threads may see, adversary before all of them;
  // - exchange: each scheduling decision exchanges two neighbors; lanes: only neighboring lanes of an atomic;
  // - atomics:SEED: each lane's atomic may let others at its address execute first (deferred_atomics.h);
  // - pct:SEED,DEPTH: the warp with the highest random priority runs, and DEPTH - 1 points in the launch lower the priority of
  //   the warp that reaches them (Burckhardt, Kothari, Musuvathi and Nagarakatte 2010).
  // All but the first two may end in @LAUNCH:FROM-TO,...: only these decisions of these launches are made by the schedule, all
  // others are those of serial.
  static Schedule parse(const std::string& text);
  Schedule(Kind kind, uint64_t seed, uint32_t depth = 1) : kind_(kind), seed_(seed), random_(seed), depth_(depth) {}

  // The decisions in a launch depend on its number alone, not on previous launches.
  void begin_launch(uint64_t launch);

  Kind kind() const { return kind_; }
  bool is_fixed_order() const { return kind_ == Kind::Serial || kind_ == Kind::Reverse; }

  uint64_t choices() const { return choice_count_; }  // scheduling decisions in this launch so far

  std::vector<uint32_t> block_order(uint32_t blocks, uint32_t warps);  // warps: of each block
  uint32_t max_resident_blocks() const { return runs_blocks_in_order() ? 1 : kind_ == Kind::Pct ? 16 : 4; }  // in flight
  bool chooses_among_blocks() const { return !runs_blocks_in_order() || kind_ == Kind::Reverse; }  // or takes the first
  uint32_t choose_index(uint32_t count);  // of `count` candidates in ascending order
  // The same for candidates with priorities, priority(k); schedules other than pct ignore these.
  template <class F> uint32_t choose_index(uint32_t count, F priority);
  bool should_preempt(uint32_t block, uint32_t warp);      // before a visible memory operation
  uint64_t priority(uint32_t block, uint32_t warp) const;  // never 0
  bool defers_atomics() const { return kind_ == Kind::Atomics; }
  // The lanes whose atomics let another one at their address execute first: half of them, or if `seldom` one of eight.
  uint32_t choose_deferred(uint32_t mask, bool seldom);
  bool should_run_divergent();  // whether a convergence group other than the one that is furthest behind may run
  uint32_t multiprocessor_of(uint32_t block, uint32_t count) const;  // not a decision that @ selects
  // What a lane gets for an unspecified value; `value`: what it gets in serial order.  Not a decision that @ selects.
  uint32_t unspecified_value(uint32_t value, uint64_t thread) const;
  uint32_t permute_lanes(uint32_t mask, uint8_t order[32]);
  float event_milliseconds();  // reported time between two events, which auto-tuners use

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // first to last decision

  void parse_choice_ranges(const std::string& text);
  uint32_t draw_lanes(uint32_t mask, bool seldom);  // some of them: half, or one of eight
  bool is_choice_enabled();  // whether the schedule makes the next decision; counts it
  uint32_t choose(uint32_t count, uint32_t default_choice);
  template <class T> void shuffle(T* order, uint32_t count);
  bool runs_blocks_in_order() const { return is_fixed_order() || kind_ == Kind::Lanes || kind_ == Kind::Atomics; }
  bool is_random() const { return kind_ == Kind::Random || kind_ == Kind::Adversary || kind_ == Kind::Pct; }
  void sort_by_priority(std::vector<uint32_t>& blocks, uint32_t warps) const;
  void draw_change_points();
  bool lowers_priority(uint32_t block, uint32_t warp);

  Kind kind_;
  uint64_t seed_, launch_seed_ = 0;
  SplitMix64 random_;
  uint32_t depth_;
  std::vector<uint64_t> change_points_;  // indices of visible operations of this launch, in descending order
  uint64_t visible_operations_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> lowered_;  // (block, warp) to its current priority
  uint64_t choice_count_ = 0;
  bool all_enabled_ = true;
  std::map<uint64_t, Ranges> enabled_ranges_;  // by launch
  const Ranges* current_ranges_ = nullptr;     // of the current launch
};

template <class F> uint32_t Schedule::choose_index(uint32_t count, F priority) {
  if (kind_ != Kind::Pct) return choose_index(count);
  if (!is_choice_enabled()) return 0;
  uint32_t best = 0;
  for (uint32_t k = 1; k < count; k++)
    if (priority(k) > priority(best)) best = k;
  return best;
}

}  // namespace vgpu
