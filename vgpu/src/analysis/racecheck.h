// VGPU_CHECK=racecheck: reports data races: two threads access one address, at least one of them writes, and nothing orders the
// accesses (happens-before, Lamport 1978).  Accesses are ordered by barriers of the block or warp, and by a fence or release
// before a strong write and a fence or acquire after the strong read.  Strong accesses do not race with each other.
#pragma once
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/observer.h"

namespace vgpu {

class RaceDetector : public Observer {
 public:
  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_fence(const WarpContext&) override;
  void on_block_barrier(const WarpContext&, bool all_threads) override;
  void on_warp_sync(const WarpContext&, uint32_t mask) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;

 private:
  // The times with which a thread has synchronized: of blocks, barriers counted; of threads, releases counted.
  struct VectorClock {
    std::map<uint64_t, uint64_t> blocks, threads;
    void join(const VectorClock& other);
  };
  struct ThreadState {
    // What it has synchronized with since its last barrier; what its strong reads saw, which its next fence acquires; what its
    // strong writes publish: all before its last fence or release.
    VectorClock clock, pending_acquire, release_clock;
    uint64_t epoch = 0;
    bool fenced = false;  // since its last barrier
  };
  struct BlockState {
    VectorClock clock, release_clock;
    uint64_t barriers = 0;
    std::vector<uint64_t> threads;  // numbers in the grid
  };
  struct AccessEpoch {
    uint64_t thread = 0, block = 0, barriers = 0, epoch = 0, access_index = 0;  // access_index 0: no access
    uint32_t line = 0;
    AccessKind kind = AccessKind::Read;
    bool strong = false;
    uint8_t bytes = 0;  // a bit for each byte of the word
  };
  struct ShadowCell {
    AccessEpoch write;
    std::vector<AccessEpoch> reads;
  };
  struct Race {
    AccessEpoch first, second;
    Location at;
    uint64_t times = 0;
  };

  ThreadState& thread(const WarpContext& warp, uint64_t number);
  bool happens_before(const AccessEpoch& earlier, const AccessEpoch& now) const;
  void check_pair(const WarpContext& warp, const AccessEpoch& earlier, const AccessEpoch& now, const uint8_t* address);
  void check_word(const WarpContext& warp, const uint8_t* address, AccessEpoch now);
  void synchronize(const WarpContext& warp, uint64_t number, const MemoryAccess& access, const uint8_t* address);
  void release(const WarpContext& warp, uint64_t number, ThreadState& state);

  std::unordered_map<uint64_t, ThreadState> threads_;
  std::unordered_map<uint64_t, BlockState> blocks_;
  std::unordered_map<uint64_t, ShadowCell> shadow_memory_;
  std::unordered_map<uint64_t, VectorClock> release_clocks_;  // by address of strong accesses
  std::map<std::tuple<uint32_t, uint32_t>, Race> races_;
  uint64_t access_index_ = 0;
};

}  // namespace vgpu
