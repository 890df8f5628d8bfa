// Parses a schedule and draws its choices.
#include "schedule.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "lanes.h"

namespace vgpu {

namespace {

constexpr uint64_t kMaxDepth = 64;
constexpr uint32_t kStepBits = 24;  // of the visible operations of a launch among which priorities change

// DEPTH of SEED,DEPTH, which goes with its comma; 0: it is none.
uint64_t take_depth(std::string& seed) {
  const size_t comma = std::min(seed.find(','), seed.size());
  const std::string depth = seed.substr(std::min(comma + 1, seed.size()));
  seed.erase(comma);
  if (depth.empty() || depth.size() > 2 || depth.find_first_not_of("0123456789") != std::string::npos) return 0;
  const uint64_t found = std::stoull(depth);
  return found <= kMaxDepth ? found : 0;
}

}  // namespace

Schedule Schedule::parse(const std::string& whole) {
  size_t mark = whole.find('@');
  std::string text = whole.substr(0, mark);
  if (whole == "serial") return Schedule(Kind::Serial, 0);
  if (whole == "reverse") return Schedule(Kind::Reverse, 0);
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon), seed = colon == std::string::npos ? "" : text.substr(colon + 1);
  const uint64_t depth = kind == "pct" ? take_depth(seed) : 1;
  bool digits = !seed.empty() && seed.size() < 20 && seed.find_first_not_of("0123456789") == std::string::npos;
  bool exchanges = text == "exchange" || text == "lanes";
  static const std::map<std::string, Kind> kinds = {{"exchange", Kind::Exchange}, {"lanes", Kind::Lanes},
                                                    {"random", Kind::Random},     {"adversary", Kind::Adversary},
                                                    {"atomics", Kind::Atomics},   {"pct", Kind::Pct}};
  auto which = kinds.find(kind);
  if (which == kinds.end() || !depth || !(exchanges || (digits && kind != "exchange" && kind != "lanes")))
    throw std::invalid_argument(whole +
                                " is no schedule: serial, reverse, random:SEED, adversary:SEED, atomics:SEED, "
                                "pct:SEED,DEPTH, exchange or lanes");
  Schedule made(which->second, exchanges ? 0 : std::stoull(seed), static_cast<uint32_t>(depth));
  if (mark != std::string::npos) made.parse_choice_ranges(whole.substr(mark + 1));
  return made;
}

namespace {

// A number at the beginning of the text, which goes; false: there is none.
bool take_number(std::string& text, uint64_t& number) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (!digits || digits > 19) return false;
  number = std::stoull(text.substr(0, digits));
  return text.erase(0, digits), true;
}
bool take(std::string& text, char mark) {
  if (text.empty() || text[0] != mark) return false;
  return text.erase(0, 1), true;
}

}  // namespace

// LAUNCH:FROM-TO,LAUNCH:ONE,...  The same as is_schedule() of runtime/tfdet_common/virtual_gpu.py.
void Schedule::parse_choice_ranges(const std::string& text) {
  for (std::string left = text; all_enabled_ || !left.empty();) {
    uint64_t launch = 0, from = 0, to = 0;
    bool sound = take_number(left, launch) && take(left, ':') && take_number(left, from);
    to = from;
    if (sound && take(left, '-')) sound = take_number(left, to);
    if (sound && !left.empty()) sound = take(left, ',') && !left.empty();
    if (!sound || to < from)
      throw std::invalid_argument("@" + text + " names no choices: LAUNCH:FROM-TO or LAUNCH:ONE, with commas");
    uint64_t& last = enabled_ranges_[launch][from];
    last = std::max(last, to);
    all_enabled_ = false;
  }
}

void Schedule::begin_launch(uint64_t launch) {
  launch_seed_ = seed_ * 0x2545f4914f6cdd1dull + launch * 0x9e3779b1ull + 77;
  random_ = SplitMix64(launch_seed_);
  choice_count_ = 0;
  if (kind_ == Kind::Pct) draw_change_points();
  auto found = enabled_ranges_.find(launch);
  current_ranges_ = found == enabled_ranges_.end() ? nullptr : &found->second;
}

bool Schedule::is_choice_enabled() {
  uint64_t number = choice_count_++;
  if (all_enabled_ || !current_ranges_) return all_enabled_;
  auto behind = current_ranges_->upper_bound(number);
  return behind != current_ranges_->begin() && number <= std::prev(behind)->second;
}

// It draws in any case: what is kept is what the whole seed would choose there.
uint32_t Schedule::choose(uint32_t among, uint32_t default_choice) {
  uint32_t drawn = random_.next_below(among);
  return is_choice_enabled() ? drawn : default_choice;
}

template <class T> void Schedule::shuffle(T* order, uint32_t count) {
  if (kind_ == Kind::Exchange || kind_ == Kind::Lanes) {
    // Neighbours only, so often that all of it turns each group around.
    for (uint32_t from = 0; from < count; from += kWarpSize)
      for (uint32_t end = std::min(from + kWarpSize, count); end > from + 1; end--)
        for (uint32_t k = from + 1; k < end; k++)
          if (is_choice_enabled()) std::swap(order[k - 1], order[k]);
  } else if (!runs_blocks_in_order()) {
    for (uint32_t k = count; k > 1; k--) std::swap(order[k - 1], order[choose(k, k - 1)]);
  }
}

// The highest of its warps' is a block's.
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

uint32_t Schedule::choose_index(uint32_t among) {
  if (kind_ == Kind::Reverse) return among - 1;
  if (runs_blocks_in_order()) return 0;
  return kind_ == Kind::Exchange ? among > 1 && is_choice_enabled() : choose(among, 0);
}

// How many visible operations a launch has is not known before: each number is drawn with a probability of at least
// 1 / (kStepBits * number).
void Schedule::draw_change_points() {
  visible_operations_ = 0, lowered_.clear(), change_points_.clear();
  for (uint32_t k = 1; k < depth_; k++) {
    const uint64_t least = 1ull << random_.next_below(kStepBits);
    change_points_.push_back(least + random_.next() % least);
  }
  std::sort(change_points_.rbegin(), change_points_.rend());
}

uint64_t Schedule::priority(uint32_t block, uint32_t warp) const {
  auto found = lowered_.find({block, warp});
  if (found != lowered_.end()) return found->second;
  return SplitMix64(launch_seed_ ^ (uint64_t(block) << 8 | warp) * 0x9e3779b97f4a7c15ull).next() | 1ull << 63;
}

// Has the warp come to a change point?  Then all others go before it.
bool Schedule::lowers_priority(uint32_t block, uint32_t warp) {
  visible_operations_++;
  bool lowers = false;
  for (; !change_points_.empty() && change_points_.back() <= visible_operations_; change_points_.pop_back()) {
    lowered_[{block, warp}] = change_points_.size();  // below those that were lowered before
    lowers = true;
  }
  return lowers;
}

bool Schedule::should_preempt(uint32_t block, uint32_t warp) {
  if (runs_blocks_in_order()) return false;
  if (kind_ == Kind::Pct) return is_choice_enabled() && lowers_priority(block, warp);
  bool wants = kind_ != Kind::Random || (random_.next() & 1);
  return is_choice_enabled() && wants;
}

bool Schedule::should_defer_atomic() {
  bool wants = random_.next() & 1;
  return is_choice_enabled() && wants;
}

bool Schedule::should_run_divergent() { return is_random() && choose(4, 1) == 0; }

uint32_t Schedule::permute_lanes(uint32_t mask, uint8_t order[32]) {
  uint32_t n = 0;
  for (uint32_t left = mask; left; left &= left - 1) order[n++] = static_cast<uint8_t>(__builtin_ctz(left));
  if (kind_ == Kind::Reverse) std::reverse(order, order + n);
  shuffle(order, n);
  return n;
}

// One block after the other on each, unless a seed says where.
uint32_t Schedule::multiprocessor_of(uint32_t block, uint32_t among) const {
  if (kind_ == Kind::Reverse) return among - 1 - block % among;
  return is_random() && all_enabled_ ? SplitMix64(launch_seed_ ^ block).next_below(among) : block % among;
}

float Schedule::event_milliseconds() { return !is_random() ? 1.0f : 0.5f + static_cast<float>(choose(1000, 500)) / 1000.0f; }

}  // namespace vgpu
