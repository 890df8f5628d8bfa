// What an instruction sees of the machine: the active lanes of one warp and their registers.
#pragma once
#include <cstdint>
#include <vector>

#include "lanes.h"
#include "memory.h"

namespace vgpu {

class DeviceHeap;
class DeferredAtomics;
class Observer;
class Schedule;
class TextureObjects;
struct Convergence;

// How a launch ends that does not end well.
enum class KernelFault : uint8_t {
  None,
  OutOfBounds,
  Misaligned,
  Trap,
  Deadlock,
  NoProgress,
  CallDepth,
  ReadOnly,
  Assertion,
  IllegalInstruction,
  NoObject
};

// Memory of which each lane has its own share, one after the other: local variables, arguments and results of calls.
struct PerLaneMemory {
  const uint8_t* base;
  uint32_t bytes_per_lane;
};

// A warp's atomics that come late (see deferred_atomics.h), in the order in which they were put off.
struct DeferralList {
  struct Entry {
    uint64_t arrival;
    uint32_t slot, lane;
  };
  std::vector<Entry> all;
};

struct WarpContext {
  uint8_t* frame = nullptr;
  uint32_t active_mask = 0;  // those that take part
  uint8_t* parameters = nullptr;
  uint8_t* scratch = nullptr;  // call arguments and results: of 32 lanes, one after the other
  uint8_t* local = nullptr;    // likewise
  uint32_t parameter_bytes = 0, scratch_bytes = 0, local_bytes = 0;
  bool has_lane_parameters = false;  // in a function each lane has its own; a kernel's are everybody's
  std::vector<PerLaneMemory>
      per_lane_memory;  // of this call and of those that led to it: their addresses may have been passed on
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  const DeviceMemory* memory = nullptr;
  DeviceHeap* heap = nullptr;
  const TextureObjects* textures = nullptr;
  Allocation recent_allocations[2];  // where accesses lay last
  uint64_t generation = 0;
  Schedule* schedule = nullptr;
  DeferredAtomics* deferred = nullptr;                // in most runs none
  DeferralList* deferrals = nullptr;                 // this warp's
  uint32_t deferred_mask = 0,
           blocked_mask = 0;  // of the last instruction's lanes: those that did not come (see deferred_atomics.h)
  bool deferral_done = false;  // this one waited already
  Observer* observer = nullptr;  // in most runs none
  const Convergence* convergence = nullptr;  // of an instruction set that runs in lockstep
  uint32_t block = 0, warp = 0, threads = 0;  // whose lanes these are; threads of a block
  int compute_capability = 80;  // of the device: 80 for 8.0
  uint64_t clock = 0;
  uint64_t atomics = 0;
  bool observed_change = false;  // a register got another value from memory that others write
  uint64_t* visible_writes = nullptr;  // of the launch: how often memory that others see was written
  KernelFault fault = KernelFault::None;
  uint64_t fault_address = 0;

  void set_fault(KernelFault what, uint64_t address) {
    if (fault == KernelFault::None) fault = what, fault_address = address;
  }
};

template <class T>
inline T* lane_values(WarpContext& warp, uint32_t offset) {
  return reinterpret_cast<T*>(warp.frame + offset);
}

inline uint32_t& predicate(WarpContext& warp, uint32_t offset) { return *reinterpret_cast<uint32_t*>(warp.frame + offset); }

// In the shared memory of the warp's block?
inline bool is_shared(const WarpContext& warp, const uint8_t* at) {
  return at >= warp.shared && at < warp.shared + warp.shared_bytes;
}

// The active lanes' bits of a predicate; the others keep theirs.
inline void write_predicate(WarpContext& warp, uint32_t offset, uint32_t bits) {
  uint32_t& held = predicate(warp, offset);
  held = (held & ~warp.active_mask) | (bits & warp.active_mask);
}

template <class F>
inline void set_predicate(WarpContext& warp, uint32_t offset, F f) {
  write_predicate(warp, offset, lanes_where(f));
}

}  // namespace vgpu
