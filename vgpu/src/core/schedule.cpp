// Parses a schedule, and draws its scheduling decisions.
#include "schedule.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "lanes.h"

namespace vgpu {

namespace {

// Of pct (probabilistic concurrency testing), in which priorities change at DEPTH - 1 points of a launch.
constexpr uint64_t kMaxDepth = 64;
// Priorities change within the first 2^kStepBits visible operations (whose effect other threads may see) of a launch.
constexpr uint32_t kStepBits = 24;

// Removes ",DEPTH" from "SEED,DEPTH" and returns DEPTH; 0: it is invalid.
uint64_t extract_depth(std::string& seed) {
  const size_t comma = std::min(seed.find(','), seed.size());
  const std::string depth = seed.substr(std::min(comma + 1, seed.size()));
  seed.erase(comma);
  if (depth.empty() || depth.size() > 2 || depth.find_first_not_of("0123456789") != std::string::npos) return 0;
  const uint64_t value = std::stoull(depth);
  return value <= kMaxDepth ? value : 0;
}

}  // namespace

Schedule Schedule::parse(const std::string& specification) {
  size_t at_sign = specification.find('@');
  std::string text = specification.substr(0, at_sign);
  if (specification == "serial") return Schedule(Kind::Serial, 0);
  if (specification == "reverse") return Schedule(Kind::Reverse, 0);
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon), seed = colon == std::string::npos ? "" : text.substr(colon + 1);
  const uint64_t depth = kind == "pct" ? extract_depth(seed) : 1;
  bool has_seed = !seed.empty() && seed.size() < 20 && seed.find_first_not_of("0123456789") == std::string::npos;
  bool is_exchange = text == "exchange" || text == "lanes";
  static const std::map<std::string, Kind> kinds = {{"exchange", Kind::Exchange}, {"lanes", Kind::Lanes},
                                                    {"random", Kind::Random},     {"adversary", Kind::Adversary},
                                                    {"atomics", Kind::Atomics},   {"pct", Kind::Pct}};
  auto entry = kinds.find(kind);
  if (entry == kinds.end() || !depth || !(is_exchange || (has_seed && kind != "exchange" && kind != "lanes")))
    throw std::invalid_argument(specification +
                                " is no schedule: serial, reverse, random:SEED, adversary:SEED, atomics:SEED, "
                                "pct:SEED,DEPTH, exchange or lanes");
  Schedule schedule(entry->second, is_exchange ? 0 : std::stoull(seed), static_cast<uint32_t>(depth));
  if (at_sign != std::string::npos) schedule.parse_choice_ranges(specification.substr(at_sign + 1));
  return schedule;
}

namespace {

// Reads a number at the beginning of the text and removes it; returns false if there is none.
bool consume_number(std::string& text, uint64_t& number) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (!digits || digits > 19) return false;
  number = std::stoull(text.substr(0, digits));
  return text.erase(0, digits), true;
}
bool consume_char(std::string& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  return text.erase(0, 1), true;
}

}  // namespace

// Parses LAUNCH:FROM-TO,LAUNCH:ONE,...; accepts the same as is_schedule() of runtime/tfdet_common/virtual_gpu.py.
void Schedule::parse_choice_ranges(const std::string& text) {
  for (std::string remaining = text; all_enabled_ || !remaining.empty();) {
    uint64_t launch = 0, from = 0, to = 0;
    bool is_valid = consume_number(remaining, launch) && consume_char(remaining, ':') && consume_number(remaining, from);
    to = from;
    if (is_valid && consume_char(remaining, '-')) is_valid = consume_number(remaining, to);
    if (is_valid && !remaining.empty()) is_valid = consume_char(remaining, ',') && !remaining.empty();
    if (!is_valid || to < from)
      throw std::invalid_argument("@" + text + " names no choices: LAUNCH:FROM-TO or LAUNCH:ONE, with commas");
    uint64_t& last = enabled_ranges_[launch][from];
    last = std::max(last, to);
    all_enabled_ = false;
  }
}

void Schedule::begin_launch(uint64_t launch) {
  launch_seed_ = seed_ * 0x2545f4914f6cdd1dull + launch * 0x9e3779b1ull + 77;  // arbitrary constants
  random_ = SplitMix64(launch_seed_);
  choice_count_ = 0;
  if (kind_ == Kind::Pct) draw_change_points();
  auto ranges = enabled_ranges_.find(launch);
  current_ranges_ = ranges == enabled_ranges_.end() ? nullptr : &ranges->second;
}

bool Schedule::is_choice_enabled() {
  uint64_t number = choice_count_++;
  if (all_enabled_ || !current_ranges_) return all_enabled_;
  auto next_range = current_ranges_->upper_bound(number);
  return next_range != current_ranges_->begin() && number <= std::prev(next_range)->second;
}

// Draws also if the decision is not enabled, so that the enabled ones stay the same.
uint32_t Schedule::choose(uint32_t count, uint32_t default_choice) {
  uint32_t drawn = random_.next_below(count);
  return is_choice_enabled() ? drawn : default_choice;
}

template <class T> void Schedule::shuffle(T* order, uint32_t count) {
  if (kind_ == Kind::Exchange || kind_ == Kind::Lanes) {
    // Exchanges only neighbors; if all decisions are enabled, each group of 32 is reversed.
    for (uint32_t begin = 0; begin < count; begin += kWarpSize)
      for (uint32_t end = std::min(begin + kWarpSize, count); end > begin + 1; end--)
        for (uint32_t k = begin + 1; k < end; k++)
          if (is_choice_enabled()) std::swap(order[k - 1], order[k]);
  } else if (!runs_blocks_in_order()) {
    for (uint32_t k = count; k > 1; k--) std::swap(order[k - 1], order[choose(k, k - 1)]);
  }
}

// Sorts blocks by priority; a block has the highest priority of its warps.
void Schedule::sort_by_priority(std::vector<uint32_t>& blocks, uint32_t warps) const {
  std::vector<uint64_t> highest(blocks.size());
  for (uint32_t block : blocks)
    for (uint32_t warp = 0; warp < warps; warp++) highest[block] = std::max(highest[block], priority(block, warp));
  std::stable_sort(blocks.begin(), blocks.end(), [&](uint32_t a, uint32_t b) { return highest[a] > highest[b]; });
}

std::vector<uint32_t> Schedule::block_order(uint32_t blocks, uint32_t warps) {
  std::vector<uint32_t> order(blocks);
  for (uint32_t k = 0; k < blocks; k++) order[k] = kind_ == Kind::Reverse ? blocks - 1 - k : k;
  if (kind_ == Kind::Pct) {
    if (is_choice_enabled()) sort_by_priority(order, warps);
  } else if (kind_ != Kind::Lanes) {
    shuffle(order.data(), blocks);
  }
  return order;
}

uint32_t Schedule::choose_index(uint32_t count) {
  if (kind_ == Kind::Reverse) return count - 1;
  if (runs_blocks_in_order()) return 0;
  return kind_ == Kind::Exchange ? count > 1 && is_choice_enabled() : choose(count, 0);
}

// Draws the change points.  Since the number of visible operations is not known, index n is drawn with a probability of at
// least 1 / (kStepBits * n).
void Schedule::draw_change_points() {
  visible_operations_ = 0, lowered_.clear(), change_points_.clear();
  for (uint32_t k = 1; k < depth_; k++) {
    const uint64_t power = 1ull << random_.next_below(kStepBits);
    change_points_.push_back(power + random_.next() % power);
  }
  std::sort(change_points_.rbegin(), change_points_.rend());
}

uint64_t Schedule::priority(uint32_t block, uint32_t warp) const {
  auto entry = lowered_.find({block, warp});
  if (entry != lowered_.end()) return entry->second;
  return SplitMix64(launch_seed_ ^ (uint64_t(block) << 8 | warp) * 0x9e3779b97f4a7c15ull).next() | 1ull << 63;
}

// Lowers the warp's priority below all others if it has reached a change point; returns whether it has.
bool Schedule::lowers_priority(uint32_t block, uint32_t warp) {
  visible_operations_++;
  bool is_lowered = false;
  for (; !change_points_.empty() && change_points_.back() <= visible_operations_; change_points_.pop_back()) {
    lowered_[{block, warp}] = change_points_.size();  // below those that were lowered before
    is_lowered = true;
  }
  return is_lowered;
}

bool Schedule::should_preempt(uint32_t block, uint32_t warp) {
  if (runs_blocks_in_order()) return false;
  if (kind_ == Kind::Pct) return is_choice_enabled() && lowers_priority(block, warp);
  bool is_drawn = kind_ != Kind::Random || (random_.next() & 1);  // adversary and exchange always preempt
  return is_choice_enabled() && is_drawn;
}

uint32_t Schedule::draw_lanes(uint32_t mask, bool seldom) {
  if (seldom) {
    const uint64_t bits = random_.next();  // the highest: none; of the others two for each lane
    return bits >> 63 ? 0 : static_cast<uint32_t>(bits & bits >> 31) & mask;
  }
  uint32_t drawn = 0;
  for (uint32_t remaining = mask; remaining; remaining &= remaining - 1)
    drawn |= static_cast<uint32_t>(random_.next() & 1) << __builtin_ctz(remaining);
  return drawn;
}

uint32_t Schedule::choose_deferred(uint32_t mask, bool seldom) {
  uint32_t drawn = draw_lanes(mask, seldom);
  if (all_enabled_) return choice_count_ += static_cast<uint32_t>(__builtin_popcount(mask)), drawn;
  for (uint32_t remaining = mask; remaining; remaining &= remaining - 1)
    if (!is_choice_enabled()) drawn &= ~(remaining & -remaining);
  return drawn;
}

bool Schedule::should_run_divergent() { return is_random() && choose(4, 1) == 0; }

uint32_t Schedule::permute_lanes(uint32_t mask, uint8_t order[32]) {
  uint32_t n = 0;
  for (uint32_t remaining = mask; remaining; remaining &= remaining - 1)
    order[n++] = static_cast<uint8_t>(__builtin_ctz(remaining));
  if (kind_ == Kind::Reverse) std::reverse(order, order + n);
  shuffle(order, n);
  return n;
}

// Distributes blocks round-robin, unless the seed decides.
uint32_t Schedule::multiprocessor_of(uint32_t block, uint32_t count) const {
  if (kind_ == Kind::Reverse) return count - 1 - block % count;
  return is_random() && all_enabled_ ? SplitMix64(launch_seed_ ^ block).next_below(count) : block % count;
}

uint32_t Schedule::unspecified_value(uint32_t value, uint64_t thread) const {
  if (kind_ == Kind::Reverse) return ~value;
  if (!is_random() || !all_enabled_) return value;
  return static_cast<uint32_t>(SplitMix64(launch_seed_ ^ thread ^ uint64_t(value) << 32).next());
}

float Schedule::event_milliseconds() { return !is_random() ? 1.0f : 0.5f + static_cast<float>(choose(1000, 500)) / 1000.0f; }

}  // namespace vgpu
