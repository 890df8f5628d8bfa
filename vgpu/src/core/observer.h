// Who looks on while a launch runs: none in most runs, and then it costs one test an instruction.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu {

struct Instruction;
struct WarpContext;
struct Launch;
struct LaunchResult;

// How far an access is meant for other threads.  Strong: atomic, volatile or relaxed, two of these are no race; and what the
// words `acquire` and `release` add to that.
enum MemoryOrder : uint8_t { kWeak = 0, kStrong = 1, kAcquire = 2, kRelease = 4 };

enum class AccessKind : uint8_t { Read, Write, Atomic };

// By what the order of atomics may show: nothing, a sum's rounding, who comes last, the old value that each gets.
enum class OrderSensitivity : uint8_t { Nothing, Rounding, LastWriterWins, ReturnsOldValue };

// What one instruction of a warp does to memory that others see, just before it does it.
struct MemoryAccess {
  AccessKind kind;
  uint8_t order;  // of MemoryOrder
  OrderSensitivity sensitivity;
  uint32_t bytes;
  uint8_t* const* addresses;  // of each lane
  const uint8_t* lane_order;  // in the order in which they come
  uint32_t count;
  bool strong() const { return order != kWeak; }
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_launch_begin(const Launch&) {}
  virtual void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) = 0;
  virtual void on_fence(const WarpContext&) {}                  // of the active lanes
  virtual void on_block_barrier(uint32_t /* block */) {}        // all its threads have met
  virtual void on_warp_sync(const WarpContext&, uint32_t /* mask */) {}  // lanes of a warp have
  virtual void on_launch_end(const Launch&, const LaunchResult&) {}
  virtual void on_fallback(const char* /* call */, uint64_t /* launch: the next one's number */) {}
};

// Several of them, in turn.
class ObserverList : public Observer {
 public:
  void add(std::unique_ptr<Observer> one) { all_.push_back(std::move(one)); }
  bool empty() const { return all_.empty(); }
  void on_launch_begin(const Launch& launch) override {
    for (auto& one : all_) one->on_launch_begin(launch);
  }
  void on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) override {
    for (auto& one : all_) one->on_access(warp, i, t);
  }
  void on_fence(const WarpContext& warp) override {
    for (auto& one : all_) one->on_fence(warp);
  }
  void on_block_barrier(uint32_t block) override {
    for (auto& one : all_) one->on_block_barrier(block);
  }
  void on_warp_sync(const WarpContext& warp, uint32_t mask) override {
    for (auto& one : all_) one->on_warp_sync(warp, mask);
  }
  void on_launch_end(const Launch& launch, const LaunchResult& outcome) override {
    for (auto& one : all_) one->on_launch_end(launch, outcome);
  }
  void on_fallback(const char* call, uint64_t launch) override {
    for (auto& one : all_) one->on_fallback(call, launch);
  }

 private:
  std::vector<std::unique_ptr<Observer>> all_;
};

// Where an address lies, in words that are the same in every process.
struct Location {
  enum Space : uint8_t { None, Shared, Global };  // None: the lane's own
  Space space = None;
  uint64_t allocation = 0;  // its number; of shared memory the block's
  uint64_t offset = 0;
};
bool is_shared(const WarpContext& warp, const uint8_t* at);  // its block's
Location location_of(const WarpContext& warp, const uint8_t* at);

// Tells the observer, with the active lanes in the order of their numbers where none is given.
void notify_access(const WarpContext& warp, const Instruction& i, MemoryAccess access);

// The number of a lane's thread in the grid.
uint64_t global_thread_index(const WarpContext& warp, uint32_t lane);

}  // namespace vgpu
