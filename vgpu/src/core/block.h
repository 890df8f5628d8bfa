// A block in execution: it selects one of its warps, and runs a slice of that warp's instructions.
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
  // writes: counter of the launch's writes to shared and global memory.
  Block(const Launch& launch, Schedule& schedule, const DeviceMemory& memory, uint64_t& writes,
        DeferredAtomics* deferred_atomics);

  void reset(uint32_t number);  // starts again as block `number` of the grid

  // Runs one convergence group until it yields, waits, exits, or its quantum (a number of instructions) has expired.
  void run_slice();

  uint64_t warps() const { return warps_.size(); }
  bool is_done() const { return live_threads_ == 0; }
  uint32_t number() const { return context_.block; }
  // Whether no warp goes on before another block performs an atomic or a write.
  bool is_parked() const { return waits_for_deferred() || scheduler_.all_parked(*context_.visible_writes); }
  bool quantum_expired() const { return quantum_expired_; }  // whether the last slice ended for that reason
  uint64_t highest_priority();  // of the runnable warps; 0: none is runnable
  LaunchResult& result() { return result_; }
  void settle_shared();  // performs deferred atomics on its shared memory, before another block gets that memory

 private:
  enum class VisibleStep : uint8_t { Done, StopBefore, StopAfter };  // where the slice ends, if it ends

  // In block.cpp: slices.
  void select_warp(const Warp& warp);
  void end_slice(const Warp& warp);
  void run_group(Warp& warp, uint32_t group);
  Step run_until_control_flow(Warp& warp, uint32_t group, uint32_t stop, uint32_t& remaining);
  inline VisibleStep run_visible(Warp& warp, ConvergenceGroup& group, const Instruction& i, uint32_t mask);
  uint32_t guarded_lanes(const Instruction& i, uint32_t mask);
  void notify_instruction(const Instruction& i, uint32_t group_mask, uint32_t active_mask);
  uint32_t lanes_meeting_condition(const Instruction& i);
  Step execute_control(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step exit_lanes(Warp& warp, uint32_t group, uint32_t mask);
  void preempt(Warp& warp, ConvergenceGroup& group);
  void park(Warp& warp, ConvergenceGroup& group);
  void set_fault(KernelFault fault, const Instruction* i, const DecodedFunction* program);

  // In synchronization.cpp: barriers and warp synchronization.
  Step arrive(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  void release_complete_barriers();
  void release_barrier(uint32_t number);
  Step synchronize_warp(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  bool release_diverged_warp_sync(Warp& warp);
  Step leave_warp_sync(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  void on_warp_sync(uint32_t lanes);

  // In deferral.cpp: atomics that let others execute first.
  bool waits_for_deferred() const { return deferred_lanes_ && !scheduler_.any_ready(); }
  void resume_deferred(DeferredAtomics& deferred_atomics);
  void split_deferred_lanes(Warp& warp, uint32_t group);
  void await_lockstep(Warp& warp, uint32_t group);

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
  uint32_t deferred_lanes_ = 0;  // lanes that wait for their deferred atomics
  bool quantum_expired_ = false;
};

}  // namespace vgpu
