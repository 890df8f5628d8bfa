// A warp: 32 lanes in convergence groups, which diverge and reconverge, and the call frames of its functions.
#pragma once
#include <memory>
#include <vector>

#include "convergence.h"
#include "instruction_set.h"
#include "memory_reservation.h"

namespace vgpu {

constexpr uint32_t kNoPc = ~0u;

// The registers and the memory of one function call, for the lanes that made it.
struct CallFrame {
  const DecodedFunction* program = nullptr;
  std::vector<uint8_t> registers, parameters, local, scratch;
  CallFrame* caller = nullptr;
  const CallSite* site = nullptr;
  uint32_t return_pc = 0;
  uint32_t depth = 0;
  uint32_t ref_count = 0;  // groups that execute in it, and frames called from it
  bool has_launch_constants = false;  // whether its DecodedFunction::launch_constants are filled
  MemoryReservation reservation;

  void reset(const DecodedFunction& function);  // zeroes the registers and writes the constants
  inline uint8_t* registers_base();
  inline uint8_t* local_base();  // of the first lane's local variables
};

// Returns the first aligned byte of a buffer that has at least `alignment` - 1 spare bytes.  alignment: a power of two.
inline uint8_t* align_within(std::vector<uint8_t>& bytes, uintptr_t alignment) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + alignment - 1) & ~(alignment - 1));
}

inline uint8_t* CallFrame::registers_base() { return align_within(registers, 64); }
inline uint8_t* CallFrame::local_base() { return align_within(local, program->local_align); }

// AtomicDeferred: the group's lanes let other atomics execute first (deferred_atomics.h).  AwaitingLockstep: it has executed an
// atomic, and waits for lanes that execute in lockstep with it and have not.
enum class GroupState : uint8_t { Ready, AwaitingBarrier, AwaitingWarpSync, AtomicDeferred, AwaitingLockstep };

struct ConvergenceGroup {
  CallFrame* frame;
  uint32_t pc;
  uint32_t mask;
  GroupState state = GroupState::Ready;
  uint32_t barrier = 0;
  bool yielded = false;         // has already let others run before the next instruction
  bool preempted = false;  // others run first: its quantum of instructions has expired, it yields, or it spins on memory
  uint8_t unchanged_reads = 0;  // consecutive reads of shared or global memory that gave no new value
  bool is_exclusive = false;    // since WARPSYNC.EXCLUSIVE: other lanes take no part in what its lanes do together
  uint32_t lockstep = 0;        // lanes that execute an atomic in lockstep, of which some were deferred; 0: none were

  // Whether the group must not be merged with a group that reaches the same program counter.
  bool is_unmergeable() const {
    return state == GroupState::AwaitingBarrier || state == GroupState::AtomicDeferred || is_exclusive || lockstep;
  }
};

// Where a group may reconverge with others of its warp.  pc: the nearest program counter ahead at which another group is.
// group_behind: whether a ready group is behind this one; it runs first, so that the lanes reconverge.
struct Reconvergence {
  uint32_t pc = kNoPc;
  bool group_behind = false;
};

struct Warp {
  std::vector<ConvergenceGroup> groups;
  std::vector<std::unique_ptr<CallFrame>> frames, free_frames;
  std::vector<uint8_t> special_registers;
  uint32_t number = 0;
  Convergence convergence;

  // Starts a kernel with the first `lanes` lanes.
  void reset(const DecodedFunction& kernel, uint32_t lanes);
  CallFrame* push_frame(const DecodedFunction& program);
  void release_frame(CallFrame* frame);  // drops one reference; a frame without references is freed, and drops its caller
  bool is_runnable() const;

  // Moves the lanes of `mask` to a new group at `pc`; the others stay in this group.
  void diverge(uint32_t group, uint32_t mask, uint32_t pc);
  void split(uint32_t group, uint32_t mask, uint32_t pc);  // the same, but the lanes stay converged
  // Merges the groups of these lanes, and makes them ready, as soon as all of them have executed their atomic.
  void end_lockstep_wait(uint32_t lanes);
  // Merges the group with all others at its program counter; `group` becomes its new index.
  void reconverge(uint32_t& group);
  Reconvergence find_reconvergence(uint32_t group) const;
  void remove_group(uint32_t group);
  // Returns the group in the deepest call with the lowest program counter, or another one if the schedule says so.
  uint32_t select_group(Schedule& schedule);
  void recheck_warp_syncs();  // lets groups that wait for lanes check again whether these have arrived or exited
};

}  // namespace vgpu
