// Runs the blocks of a grid in the order that the schedule chooses.  Resident blocks run in turns: a slice runs one warp of a
// block until it yields or its quantum (a number of instructions) expires.  A block is parked while it only waits for threads
// of other blocks.  A deferred atomic lets another at its address execute first.  If its lane waits for it, it executes once
// it is released; otherwise it is late, and is settled when it is performed.
#include "launch.h"

#include <algorithm>
#include <memory>

#include "block.h"
#include "deferred_atomics.h"

namespace vgpu {
namespace {

constexpr uint32_t kMaxExpiredQuanta = 64;  // expired quanta of resident blocks before another block is admitted
constexpr uint32_t kStarted = ~0u;  // replaces a block's number in order_
constexpr uint32_t kMaxDeferringBlocks = 64;  // resident blocks with deferred atomics before these are released
constexpr uint32_t kMaxIdleSlices = 1024;  // slices per resident warp without any block's end, before another block is admitted

class GridExecutor {
 public:
  GridExecutor(const Launch& launch, Schedule& schedule, const DeviceMemory& memory)
      : launch_(launch),
        schedule_(schedule),
        memory_(memory),
        order_(schedule.block_order(launch.grid[0] * launch.grid[1] * launch.grid[2], launch.warps_per_block())),
        max_resident_(schedule.max_resident_blocks()),
        deferred_atomics_(schedule) {}

  LaunchResult run_to_completion() {
    while (total_.fault == KernelFault::None && (has_pending_blocks() || !resident_.empty())) {
      while (has_pending_blocks() && resident_.size() < max_resident_) admit(next_pending());
      run_slice();
    }
    deferred_atomics_.settle_all();
    return total_;
  }

 private:
  bool has_pending_blocks() const { return started_ < order_.size(); }

  void admit(size_t position) {
    std::unique_ptr<Block> block;
    if (free_blocks_.empty())
      block = std::make_unique<Block>(launch_, schedule_, memory_, writes_,
                                      schedule_.defers_atomics() ? &deferred_atomics_ : nullptr);
    else block = std::move(free_blocks_.back()), free_blocks_.pop_back();
    block->reset(order_[position]);
    order_[position] = kStarted, started_++;
    resident_.push_back(std::move(block));
    total_.blocks++;
  }

  size_t next_pending() {
    while (order_[next_] == kStarted) next_++;
    return next_;
  }

  // Returns the position in order_ of the pending block with the lowest number: kernels rely on lower blocks having started.
  size_t lowest_pending() {
    if (order_index_.empty()) {
      order_index_.resize(order_.size());
      for (uint32_t k = 0; k < order_.size(); k++)
        if (order_[k] != kStarted) order_index_[order_[k]] = k;
    }
    while (order_[order_index_[lowest_]] != lowest_) lowest_++;
    return order_index_[lowest_];
  }

  void run_slice() {
    if (deferred_atomics_.has_waiting() && (!has_pending_blocks() || resident_.size() >= kMaxDeferringBlocks) && all_parked())
      deferred_atomics_.release_all();
    if (const DeferredAtomics::Suspension* next = deferred_atomics_.next()) return run_block_slice(*next->block);
    const uint32_t index = select_block();
    run_block_slice(*resident_[index]);
    if (resident_[index]->is_done()) retire(index);
  }

  uint32_t select_block() {
    uint32_t count = static_cast<uint32_t>(resident_.size());
    // Lanes whose atomics were released gather while the block continues, and then run together.
    if (schedule_.defers_atomics() && current_ < count && !resident_[current_]->is_parked() && !expired_quanta_)
      return current_;
    const uint32_t awake = count_awake(schedule_.chooses_among_blocks() ? count : 1);
    if (!awake && has_pending_blocks()) {  // all resident blocks wait for other threads
      admit(++forced_admissions_ % 2 ? lowest_pending() : next_pending());
      return current_ = count;
    }
    if (expired_quanta_ || !awake)
      return static_cast<uint32_t>(round_robin_++ % count);  // each block gets a turn, also the one that others wait for
    return current_ = nth_awake(
               count > 1
                   ? schedule_.choose_index(awake, [this](uint32_t k) { return resident_[nth_awake(k)]->highest_priority(); })
                   : 0);
  }

  uint32_t count_awake(uint32_t limit) const {
    uint32_t awake = 0;
    for (size_t k = 0; k < resident_.size() && awake < limit; k++) awake += !resident_[k]->is_parked();
    return awake;
  }

  uint32_t nth_awake(uint32_t n) const {
    uint32_t index = 0;
    while (resident_[index]->is_parked() || n--) index++;
    return index;
  }

  bool all_parked() const {
    return std::all_of(resident_.begin(), resident_.end(), [](const auto& block) { return block->is_parked(); });
  }

  void run_block_slice(Block& block) {
    slices_without_progress_++;
    block.run_slice();
    LaunchResult& slice_result = block.result();
    total_.instructions += slice_result.instructions, slice_result.instructions = 0;
    total_.atomics += slice_result.atomics, slice_result.atomics = 0;
    if (slice_result.fault != KernelFault::None) total_.fault = slice_result.fault, total_.message = slice_result.message;
    if (launch_.max_instructions && total_.instructions > launch_.max_instructions) set_no_progress();
    if (!block.quantum_expired()) expired_quanta_ = block.is_done() ? 0 : expired_quanta_;
    else if (++expired_quanta_ % kMaxExpiredQuanta == 0) admit_waiting();
    // A kernel that spins on memory yields at each access, so its slices are many and short.
    if (slices_without_progress_ > kMaxIdleSlices * block.warps() * resident_.size())
      admit_waiting(), slices_without_progress_ = 0;
  }

  void retire(uint32_t index) {
    resident_[index]->settle_shared();
    slices_without_progress_ = forced_admissions_ = 0;
    free_blocks_.push_back(std::move(resident_[index]));
    resident_.erase(resident_.begin() + index);
  }

  // Performs or admits what resident blocks may wait for: late atomics, another block.
  void admit_waiting() {
    deferred_atomics_.settle_all();
    if (has_pending_blocks()) max_resident_++;
  }

  void set_no_progress() {
    total_.fault = KernelFault::NoProgress;
    total_.message = "no end within the instructions allowed in " + launch_.program->name;
  }

  const Launch& launch_;
  Schedule& schedule_;
  const DeviceMemory& memory_;
  std::vector<uint32_t> order_;
  std::vector<std::unique_ptr<Block>> resident_, free_blocks_;
  std::vector<uint32_t> order_index_;  // position of each block in order_, filled at its first use
  size_t next_ = 0, started_ = 0, max_resident_;
  DeferredAtomics deferred_atomics_;
  uint32_t lowest_ = 0, current_ = 0;  // current_: index of the block that was chosen last
  // writes_: number of writes to shared and global memory so far.
  uint64_t expired_quanta_ = 0, round_robin_ = 0, slices_without_progress_ = 0, forced_admissions_ = 0, writes_ = 0;
  LaunchResult total_;
};

}  // namespace

LaunchResult run_launch(const Launch& launch, Schedule& schedule, const DeviceMemory& memory) {
  if (launch.observer) launch.observer->on_launch_begin(launch);
  LaunchResult result = GridExecutor(launch, schedule, memory).run_to_completion();
  result.schedule_choices = schedule.choices();
  if (launch.observer) launch.observer->on_launch_end(launch, result);
  return result;
}

}  // namespace vgpu
