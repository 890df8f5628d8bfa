// A block that is under way: whose turn it is among its warps, and what ends a turn.
#pragma once
#include <vector>

#include "barriers.h"
#include "block_memory.h"
#include "control_flow.h"
#include "launch.h"
#include "warp.h"
#include "warp_scheduler.h"

namespace vgpu {

class Block {
 public:
  Block(const Launch& launch, Schedule& schedule, const DeviceMemory& memory, uint64_t& writes,
        DeferredAtomics* deferred_atomics);

  void reset(uint32_t number);  // begins anew, as block `number` of the grid

  // Runs one group until it yields, waits, ends or has run for long.
  void run_slice();

  uint64_t warps() const { return warps_.size(); }
  bool done() const { return live_threads_ == 0; }
  uint32_t number() const { return context_.block; }
  bool is_parked() const { return waits_for_deferred() || scheduler_.all_parked(*context_.visible_writes); }
  bool quantum_expired() const { return quantum_expired_; }  // the last slice ended because it was long
  uint64_t highest_priority();  // of the warps of which one may go on; 0: none can
  LaunchResult& result() { return result_; }
  void settle_shared();  // what comes late to its shared memory, before that is another's

 private:
  enum class Visible : uint8_t { Done, StopBefore, StopBehind };

  // block.cpp: slices.
  void select_warp(const Warp& warp);
  void end_slice(const Warp& warp);
  void run_group(Warp& warp, uint32_t group);
  Step run_until_control_flow(Warp& warp, uint32_t group, uint32_t stop, uint32_t& left);
  inline Visible run_visible(Warp& warp, ConvergenceGroup& group, const Instruction& i, uint32_t mask);
  uint32_t guarded(const Instruction& i, uint32_t mask);
  uint32_t condition(const Instruction& i);
  Step execute_control(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step exit_lanes(Warp& warp, uint32_t group, uint32_t mask);
  void preempt(Warp& warp, ConvergenceGroup& group);
  void park(Warp& warp, ConvergenceGroup& group);
  void set_fault(KernelFault fault, const Instruction* i, const DecodedFunction* program);

  // synchronization.cpp: lanes that wait for each other.
  Step arrive(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  void release_complete_barriers();
  void release_barrier(uint32_t which);
  Step warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  bool warp_sync_diverged(Warp& warp);
  Step leave_warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  void on_warp_sync(uint32_t lanes);

  // deferral.cpp: atomics that let others go first.
  bool waits_for_deferred() const { return deferred_lanes_ && !scheduler_.any_ready(); }
  void resume_deferred(DeferredAtomics& deferred_atomics);
  void split_deferred_lanes(Warp& warp, uint32_t group);

  const Launch& launch_;
  Schedule& schedule_;
  LaunchResult result_;
  WarpContext context_;
  BlockMemory memory_;
  ControlFlow control_;
  WarpScheduler scheduler_;
  Barriers barriers_;
  std::vector<Warp> warps_;
  std::vector<DeferralList> deferrals_;  // of each warp
  uint32_t live_threads_ = 0;
  uint32_t deferred_lanes_ = 0;  // lanes that wait with their atomics
  bool quantum_expired_ = false;
};

}  // namespace vgpu
