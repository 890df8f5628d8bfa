// A warp: 32 lanes, in groups that are at the same place of the same function; how the groups part and come together.
#pragma once
#include <memory>
#include <vector>

#include "convergence.h"
#include "instruction_set.h"
#include "memory_reservation.h"

namespace vgpu {

constexpr uint32_t kNoPc = ~0u;

// The registers and the memory of one call, for the lanes that made it.
struct CallFrame {
  const DecodedFunction* program = nullptr;
  std::vector<uint8_t> registers, parameters, local, scratch;
  CallFrame* caller = nullptr;
  const CallSite* site = nullptr;
  uint32_t return_pc = 0;
  uint32_t depth = 0;
  uint32_t ref_count = 0;  // groups in it, and frames called from it
  bool has_launch_constants = false;
  MemoryReservation charge;

  void reset(const DecodedFunction& p);  // registers zero, constants in place
  uint8_t* registers_base();
  uint8_t* local_base();  // of the first lane's variables
};

// Where `bytes`, which are so many more than needed, are aligned to a power of two.
inline uint8_t* align_within(std::vector<uint8_t>& bytes, uintptr_t to) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + to - 1) & ~(to - 1));
}

// AtomicDeferred: its one lane's atomic lets others go first (deferred_atomics.h).
enum class GroupState : uint8_t { Ready, AwaitingBarrier, AwaitingWarpSync, AtomicDeferred };

struct ConvergenceGroup {
  CallFrame* frame;
  uint32_t pc;
  uint32_t mask;
  GroupState state = GroupState::Ready;
  uint32_t barrier = 0;
  bool yielded = false;         // before this instruction already
  bool preempted = false;       // it ran for long without meeting anybody
  uint8_t unchanged_reads = 0;  // of what others may change, one after the other

  // Waits where it is for others, and does not go on with a group that comes there.
  bool waits_apart() const { return state == GroupState::AwaitingBarrier || state == GroupState::AtomicDeferred; }
};

// What the other groups are to one: pc, the nearest place before it at which another waits to go on with it; group_behind,
// whether one that is not yet there may go on. That one goes first, so that the lanes come together again.
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

  // All `lanes` lanes at the beginning of a kernel.
  void reset(const DecodedFunction& kernel, uint32_t lanes);
  CallFrame* push_frame(const DecodedFunction& program);
  void release_frame(CallFrame* frame);  // by one holder; the frame goes with its last one, and so for its callers
  bool is_runnable() const;

  // The lanes of `mask` go on at `pc`, the others of the group where they are.
  void diverge(uint32_t group, uint32_t mask, uint32_t pc);
  // With the groups at its very place; `group` is where it is afterwards.
  void reconverge(uint32_t& group);
  Reconvergence find_reconvergence(uint32_t group) const;
  void remove_group(uint32_t group);
  // The group that the others wait for: the deepest call, and there the least place; now and then another, as threads of a
  // warp are independent.
  uint32_t select_group(Schedule& schedule);
  void recheck_warp_syncs();  // who waits for lanes looks again whether they have come, or ended
};

}  // namespace vgpu
