// The interface of observers of a launch.  Without an observer, the cost is one test for each instruction.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lanes.h"
#include "memory_access.h"

namespace vgpu {

struct Instruction;
struct WarpContext;
struct Launch;
struct LaunchResult;
struct DecodedFunction;
enum class ScheduleSource : uint8_t;

// Where the lanes of a shuffle take their values from.
struct ShuffleSources {
  uint8_t lane[32];
  uint32_t unspecified = 0;  // lanes that get an unspecified value, since the source takes no part
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_launch_begin(const Launch&) {}
  virtual void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) = 0;
  // An access to the lanes' own memory by an instruction for it; one by a generic address is an on_access.
  virtual void on_local_access(const WarpContext&, const Instruction&, const MemoryAccess&) {}
  virtual void on_fence(const WarpContext&) {}                  // by the active lanes
  virtual void on_block_barrier(const WarpContext&, bool /* all_threads: all that have not exited took part */) {}
  virtual void on_warp_sync(const WarpContext&, uint32_t /* mask: the lanes */) {}
  virtual void on_convergence(const WarpContext&) {}  // the active lanes have reconverged, if code runs in lockstep
  virtual void on_function_entry(const WarpContext&, const DecodedFunction&) {}  // by a call; the context is the callee's
  virtual void on_schedule_source(const Instruction&, ScheduleSource) {}  // the schedule decides the result
  // Called before the active lanes exchange values, if some get an unspecified one, or WarpContext::follows_values.
  virtual void on_shuffle(const WarpContext&, const Instruction&, const ShuffleSources&) {}
  // Whether on_instruction is to be called for this warp.
  virtual bool follows_values(const WarpContext&) { return false; }
  // Called before the lanes of a convergence group reach an instruction; the active lanes are those whose guard is true.
  virtual void on_instruction(const WarpContext&, const Instruction&, uint32_t /* group_mask: all lanes of the group */) {}
  virtual void on_launch_end(const Launch&, const LaunchResult&) {}
  // A call of a vendor library was computed on the CPU.
  virtual void on_fallback(const char* /* call */, uint64_t /* launch: number of the next launch */) {}
};

// Observers that are called in turn.
class ObserverList : public Observer {
 public:
  void add(std::unique_ptr<Observer> observer) { observers_.push_back(std::move(observer)); }
  // Returns what notifies all of them: nullptr if there are none, and a single one itself, which is faster.
  Observer* as_observer() {
    if (observers_.empty()) return nullptr;
    return observers_.size() == 1 ? observers_[0].get() : this;
  }
  void on_launch_begin(const Launch& launch) override {
    for (auto& observer : observers_) observer->on_launch_begin(launch);
  }
  void on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) override {
    for (auto& observer : observers_) observer->on_access(warp, i, access);
  }
  void on_local_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) override {
    for (auto& observer : observers_) observer->on_local_access(warp, i, access);
  }
  void on_fence(const WarpContext& warp) override {
    for (auto& observer : observers_) observer->on_fence(warp);
  }
  void on_block_barrier(const WarpContext& warp, bool all_threads) override {
    for (auto& observer : observers_) observer->on_block_barrier(warp, all_threads);
  }
  void on_warp_sync(const WarpContext& warp, uint32_t mask) override {
    for (auto& observer : observers_) observer->on_warp_sync(warp, mask);
  }
  void on_convergence(const WarpContext& warp) override {
    for (auto& observer : observers_) observer->on_convergence(warp);
  }
  void on_function_entry(const WarpContext& warp, const DecodedFunction& function) override {
    for (auto& observer : observers_) observer->on_function_entry(warp, function);
  }
  void on_schedule_source(const Instruction& i, ScheduleSource source) override {
    for (auto& observer : observers_) observer->on_schedule_source(i, source);
  }
  void on_shuffle(const WarpContext& warp, const Instruction& i, const ShuffleSources& sources) override {
    for (auto& observer : observers_) observer->on_shuffle(warp, i, sources);
  }
  bool follows_values(const WarpContext& warp) override {
    return std::any_of(observers_.begin(), observers_.end(), [&](auto& observer) { return observer->follows_values(warp); });
  }
  void on_instruction(const WarpContext& warp, const Instruction& i, uint32_t group_mask) override {
    for (auto& observer : observers_) observer->on_instruction(warp, i, group_mask);
  }
  void on_launch_end(const Launch& launch, const LaunchResult& result) override {
    for (auto& observer : observers_) observer->on_launch_end(launch, result);
  }
  void on_fallback(const char* call, uint64_t launch) override {
    for (auto& observer : observers_) observer->on_fallback(call, launch);
  }

 private:
  std::vector<std::unique_ptr<Observer>> observers_;
};

// An address as a space, an allocation and an offset, which do not differ between processes.
struct Location {
  enum Space : uint8_t { None, Shared, Global };  // None: the lane's own memory
  Space space = None;
  uint64_t allocation = 0;  // number of the allocation; of shared memory the number of the block
  uint64_t offset = 0;
};
Location location_of(const WarpContext& warp, const uint8_t* pointer);

// Passes an access to the observer; without an access.lane_order, the active lanes are in ascending order.
void notify_access(WarpContext& warp, const Instruction& i, MemoryAccess access);
void notify_local_access(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes,
                         uint8_t* const addresses[kWarpSize], RegisterValues values);

// Passes a shuffle to the observer, if it has to know of it.
void notify_shuffle(WarpContext& warp, const Instruction& i, const ShuffleSources& sources);

// What a lane gets from a lane that takes no part in a shuffle: unspecified, so that the schedule chooses it.
uint32_t unspecified_value(const WarpContext& warp, uint32_t lane, uint32_t own_value);

// The number of a lane's thread in the grid.
uint64_t global_thread_index(const WarpContext& warp, uint32_t lane);

}  // namespace vgpu
