// Who looks on while a launch runs: none in most runs, and then it costs one test an instruction.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "memory_access.h"

namespace vgpu {

struct Instruction;
struct WarpContext;
struct Launch;
struct LaunchResult;
struct DecodedFunction;
enum class ScheduleSource : uint8_t;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_launch_begin(const Launch&) {}
  virtual void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) = 0;
  virtual void on_fence(const WarpContext&) {}                  // of the active lanes
  virtual void on_block_barrier(const WarpContext&, bool /* whole */) {}  // threads of a block have met: all that live?
  virtual void on_warp_sync(const WarpContext&, uint32_t /* mask */) {}  // lanes of a warp have
  virtual void on_convergence(const WarpContext&) {}  // active lanes go on together, in a set that runs in lockstep
  virtual void on_function_entry(const DecodedFunction&) {}  // by a call
  virtual void on_schedule_source(const Instruction&, ScheduleSource) {}  // a result that is nobody's to rely on
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
  void on_block_barrier(const WarpContext& warp, bool whole) override {
    for (auto& one : all_) one->on_block_barrier(warp, whole);
  }
  void on_warp_sync(const WarpContext& warp, uint32_t mask) override {
    for (auto& one : all_) one->on_warp_sync(warp, mask);
  }
  void on_convergence(const WarpContext& warp) override {
    for (auto& one : all_) one->on_convergence(warp);
  }
  void on_function_entry(const DecodedFunction& function) override {
    for (auto& one : all_) one->on_function_entry(function);
  }
  void on_schedule_source(const Instruction& i, ScheduleSource source) override {
    for (auto& one : all_) one->on_schedule_source(i, source);
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
Location location_of(const WarpContext& warp, const uint8_t* at);

// Tells the observer, with the active lanes in the order of their numbers where none is given.
void notify_access(const WarpContext& warp, const Instruction& i, MemoryAccess access);

// The number of a lane's thread in the grid.
uint64_t global_thread_index(const WarpContext& warp, uint32_t lane);

}  // namespace vgpu
