// The state that an instruction can access: the active lanes of one warp, their registers and memory.
#pragma once
#include <cstdint>
#include <vector>

#include "lanes.h"
#include "memory.h"

namespace vgpu {

class Block;
class DeviceHeap;
class DeferredAtomics;
class Observer;
class Schedule;
class TextureObjects;
struct Convergence;

// Why a launch has failed.
enum class KernelFault : uint8_t {
  None,
  OutOfBounds,
  Misaligned,
  Trap,
  Deadlock,
  NoProgress,  // more instructions than the launch allows
  CallDepth,  // too many nested calls
  ReadOnly,
  Assertion,
  IllegalInstruction,
  InvalidTextureObject  // no texture or surface object, or one over memory that is freed
};

// Memory with a consecutive part for each lane: local variables, arguments and results of calls.
struct PerLaneMemory {
  const uint8_t* base;
  uint32_t bytes_per_lane;
  bool is_local;  // local variables
};

// A warp's late atomics: their lanes continue before they are performed (deferred_atomics.h).  In order of arrival.
struct DeferralList {
  struct Entry {
    uint32_t slot, generation, lane;  // slot, generation: in the table of late atomics
  };
  std::vector<Entry> all;
};

struct WarpContext {
  uint8_t* frame = nullptr;
  uint32_t active_mask = 0;  // lanes that execute the instruction
  uint8_t* parameters = nullptr;
  uint8_t* scratch = nullptr;  // arguments and results of calls, consecutive for each lane
  uint8_t* local = nullptr;    // likewise
  uint32_t parameter_bytes = 0, scratch_bytes = 0, local_bytes = 0;
  bool has_lane_parameters = false;  // of a called function; a kernel's parameters are shared by all lanes
  std::vector<PerLaneMemory> per_lane_memory;  // of this call and its callers, whose addresses may have been passed
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  const DeviceMemory* memory = nullptr;
  DeviceHeap* heap = nullptr;
  const TextureObjects* textures = nullptr;
  Allocation recent_allocations[2];  // a cache of the latest accesses
  uint64_t generation = 0;  // DeviceMemory::generation() of that cache
  Schedule* schedule = nullptr;
  DeferredAtomics* deferred = nullptr;                // nullptr, unless the schedule defers atomics
  DeferralList* deferrals = nullptr;                 // this warp's
  // Lanes that did not execute the last atomic.  deferred: theirs lets others execute first; blocked: theirs must follow
  // another warp's (deferred_atomics.h).
  uint32_t deferred_mask = 0, blocked_mask = 0;
  bool deferral_done = false;  // the atomic was deferred before, and executes now
  Observer* observer = nullptr;  // nullptr without an analysis
  bool follows_values = false;  // the observer follows values of this warp from register to register
  const Convergence* convergence = nullptr;  // of an instruction set that runs in lockstep
  uint32_t block = 0, warp = 0, threads = 0;  // numbers of block and warp; threads of a block
  int compute_capability = 80;  // of the device: 80 for 8.0
  uint64_t clock = 0;
  uint64_t atomics = 0;
  bool result_changed = false;  // a load returned a value other than the register held
  uint64_t* visible_writes = nullptr;  // counter of the launch's writes to shared and global memory
  KernelFault fault = KernelFault::None;
  uint64_t fault_address = 0;
  Block* resident_block = nullptr;  // to which the warp belongs

  void set_fault(KernelFault kind, uint64_t address) {
    if (fault == KernelFault::None) fault = kind, fault_address = address;
  }
};

template <class T>
inline T* lane_values(WarpContext& warp, uint32_t offset) {
  return reinterpret_cast<T*>(warp.frame + offset);
}

inline uint32_t& predicate(WarpContext& warp, uint32_t offset) { return *reinterpret_cast<uint32_t*>(warp.frame + offset); }

// Returns whether the host address lies in the shared memory of the warp's block.
inline bool is_shared(const WarpContext& warp, const uint8_t* address) {
  return address >= warp.shared && address < warp.shared + warp.shared_bytes;
}

// Writes a predicate's bits of the active lanes; inactive lanes keep theirs.
inline void write_predicate(WarpContext& warp, uint32_t offset, uint32_t bits) {
  uint32_t& value = predicate(warp, offset);
  value = (value & ~warp.active_mask) | (bits & warp.active_mask);
}

template <class F>
inline void set_predicate(WarpContext& warp, uint32_t offset, F f) {
  write_predicate(warp, offset, lanes_where(f));
}

}  // namespace vgpu
