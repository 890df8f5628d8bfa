#include "launch.h"

#include <algorithm>
#include <memory>

#include "block.h"
#include "deferred_atomics.h"

namespace vgpu {
namespace {

constexpr uint32_t kSpins = 64;  // long turns of all blocks in flight before another block is let in
constexpr uint32_t kBegun = ~0u;  // in the order, instead of a block's number
constexpr uint32_t kMostHeld = 64;  // blocks in flight in which somebody lets others go first, before nobody does any more
constexpr uint32_t kPatience = 1024;  // turns of each warp in flight without any block's end, before another is let in

class Run {
 public:
  Run(const Launch& launch, Schedule& schedule, const Memory& memory)
      : launch_(launch),
        schedule_(schedule),
        memory_(memory),
        order_(schedule.block_order(launch.grid[0] * launch.grid[1] * launch.grid[2])),
        window_(schedule.window()),
        holding_(schedule) {}

  Outcome all() {
    while (total_.fault == Fault::None && (waiting() || !flying_.empty())) {
      while (waiting() && flying_.size() < window_) admit(next());
      turn(choose());
    }
    holding_.settle_all();
    return total_;
  }

 private:
  bool waiting() const { return begun_ < order_.size(); }

  void admit(size_t at) {
    std::unique_ptr<Block> block;
    if (spare_.empty())
      block = std::make_unique<Block>(launch_, schedule_, memory_, writes_, schedule_.holds() ? &holding_ : nullptr);
    else block = std::move(spare_.back()), spare_.pop_back();
    block->begin(order_[at]);
    order_[at] = kBegun, begun_++;
    flying_.push_back(std::move(block));
    total_.blocks++;
  }

  size_t next() {
    while (order_[next_] == kBegun) next_++;
    return next_;
  }

  // Of those that have not begun, the one with the least number: kernels count on lower blocks having begun before.
  size_t lowest() {
    if (places_.empty()) {
      places_.resize(order_.size());
      for (uint32_t k = 0; k < order_.size(); k++)
        if (order_[k] != kBegun) places_[order_[k]] = k;
    }
    while (order_[places_[lowest_]] != lowest_) lowest_++;
    return places_[lowest_];
  }

  uint32_t choose() {
    uint32_t count = static_cast<uint32_t>(flying_.size());
    if (holding_.any() && (!waiting() || count >= kMostHeld) && all_asleep()) holding_.release();
    if (const Holding::One* one = holding_.next()) return in_flight(one->block);
    uint32_t awake = 0;
    for (const auto& one : flying_) awake += !one->asleep();
    if (!awake && waiting()) {  // all in flight wait for somebody else
      admit(++stuck_ % 2 ? lowest() : next());
      return count;
    }
    if (spins_ || !awake) return static_cast<uint32_t>(round_++ % count);  // whoever is waited for comes
    uint32_t skip = count > 1 ? schedule_.pick(awake) : 0, which = 0;
    while (flying_[which]->asleep() || skip--) which++;
    return which;
  }

  bool all_asleep() const {
    return std::all_of(flying_.begin(), flying_.end(), [](const auto& one) { return one->asleep(); });
  }

  uint32_t in_flight(uint32_t block) const {
    uint32_t which = 0;
    while (flying_[which]->number() != block) which++;
    return which;
  }

  void turn(uint32_t which) {
    Block& block = *flying_[which];
    quiet_++;
    block.turn();
    Outcome& done = block.outcome();
    total_.instructions += done.instructions, done.instructions = 0;
    total_.atomics += done.atomics, done.atomics = 0;
    if (done.fault != Fault::None) total_.fault = done.fault, total_.message = done.message;
    if (launch_.most_instructions && total_.instructions > launch_.most_instructions) no_end();
    if (!block.spinning()) spins_ = block.done() ? 0 : spins_;
    else if (++spins_ % kSpins == 0) let_on();
    // A kernel that spins on memory yields at each access: its turns are many and short.
    if (quiet_ > kPatience * block.warps() * flying_.size()) let_on(), quiet_ = 0;
    if (block.done()) {
      block.settle_shared();
      quiet_ = stuck_ = 0;
      spare_.push_back(std::move(flying_[which]));
      flying_.erase(flying_.begin() + which);
    }
  }

  // What somebody may wait for: an atomic that comes late, another block.
  void let_on() {
    holding_.settle_all();
    if (waiting()) window_++;
  }

  void no_end() {
    total_.fault = Fault::NoProgress;
    total_.message = "no end within the instructions allowed in " + launch_.program->name;
  }

  const Launch& launch_;
  Schedule& schedule_;
  const Memory& memory_;
  std::vector<uint32_t> order_;
  std::vector<std::unique_ptr<Block>> flying_, spare_;
  std::vector<uint32_t> places_;  // of each block in order_, made when first needed
  size_t next_ = 0, begun_ = 0, window_;
  Holding holding_;
  uint32_t lowest_ = 0;
  uint64_t spins_ = 0, round_ = 0, quiet_ = 0, stuck_ = 0, writes_ = 0;
  Outcome total_;
};

}  // namespace

Outcome run(const Launch& launch, Schedule& schedule, const Memory& memory) {
  if (launch.observer) launch.observer->begin(launch);
  Outcome outcome = Run(launch, schedule, memory).all();
  outcome.choices = schedule.choices();
  if (launch.observer) launch.observer->end(launch, outcome);
  return outcome;
}

}  // namespace vgpu
