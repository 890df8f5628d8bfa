#include "launch.h"

#include <memory>

#include "block.h"

namespace vgpu {
namespace {

constexpr uint32_t kSpins = 64;  // long turns of all blocks in flight before another block is let in
constexpr uint32_t kPatience = 1024;  // turns of each warp in flight without any block's end, before another is let in

class Run {
 public:
  Run(const Launch& launch, Schedule& schedule, const Memory& memory)
      : launch_(launch), schedule_(schedule), memory_(memory),
        order_(schedule.block_order(launch.grid[0] * launch.grid[1] * launch.grid[2])), window_(schedule.window()) {}

  Outcome all() {
    while (total_.fault == Fault::None && (next_ < order_.size() || !flying_.empty())) {
      while (next_ < order_.size() && flying_.size() < window_) admit();
      turn(choose());
    }
    return total_;
  }

 private:
  void admit() {
    std::unique_ptr<Block> block;
    if (spare_.empty()) block = std::make_unique<Block>(launch_, schedule_, memory_);
    else block = std::move(spare_.back()), spare_.pop_back();
    block->begin(order_[next_++]);
    flying_.push_back(std::move(block));
    total_.blocks++;
  }

  uint32_t choose() {
    uint32_t count = static_cast<uint32_t>(flying_.size());
    if (spins_ && count > 1) return static_cast<uint32_t>(turns_ % count);  // whoever is waited for comes
    return count > 1 ? schedule_.pick(count) : 0;
  }

  void turn(uint32_t which) {
    Block& block = *flying_[which];
    turns_++, quiet_++;
    block.turn();
    Outcome& done = block.outcome();
    total_.instructions += done.instructions, done.instructions = 0;
    total_.atomics += done.atomics, done.atomics = 0;
    if (done.fault != Fault::None) total_.fault = done.fault, total_.message = done.message;
    if (launch_.most_instructions && total_.instructions > launch_.most_instructions) no_end();
    if (!block.spinning()) spins_ = block.done() ? 0 : spins_;
    else if (++spins_ % kSpins == 0 && next_ < order_.size()) window_++;
    // A kernel that spins on memory yields at each access: its turns are many and short.
    if (quiet_ > kPatience * block.warps() * flying_.size() && next_ < order_.size()) window_++, quiet_ = 0;
    if (block.done()) {
      quiet_ = 0;
      spare_.push_back(std::move(flying_[which]));
      flying_.erase(flying_.begin() + which);
    }
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
  size_t next_ = 0, window_;
  uint64_t spins_ = 0, turns_ = 0, quiet_ = 0;
  Outcome total_;
};

}  // namespace

Outcome run(const Launch& launch, Schedule& schedule, const Memory& memory) {
  return Run(launch, schedule, memory).all();
}

}  // namespace vgpu
