// A warp: 32 lanes, in groups that are at the same place of the same function.
#pragma once
#include <memory>
#include <vector>

#include "instruction_set.h"
#include "memory_reservation.h"
#include "warp_context.h"

namespace vgpu {

constexpr uint32_t kMostDepth = 4096;  // of calls; memory may end before, see memory_reservation.h

// The registers and the memory of one call, for the lanes that made it.
struct Frame {
  const Program* program = nullptr;
  std::vector<uint8_t> registers, parameters, local, scratch;
  Frame* caller = nullptr;
  const CallSite* site = nullptr;
  uint32_t return_pc = 0;
  uint32_t depth = 0;
  uint32_t holders = 0;  // groups in it, and frames called from it
  Charge charge;

  void prepare(const Program& p);  // registers zero, constants in place
  uint8_t* aligned();              // where the registers begin
  uint8_t* local_variables();      // likewise, those of the first lane
};

// Where `bytes`, which are so many more than needed, are aligned to a power of two.
inline uint8_t* aligned_in(std::vector<uint8_t>& bytes, uintptr_t to) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + to - 1) & ~(to - 1));
}

// Held: its one lane's atomic lets others go first (deferred_atomics.h).
enum class State : uint8_t { Ready, Barrier, Meeting, Held };

struct Group {
  Frame* frame;
  uint32_t pc;
  uint32_t mask;
  State state = State::Ready;
  uint32_t barrier = 0;
  bool passed = false;  // it yielded before this instruction already
  bool tired = false;   // it ran for long without meeting anybody
  uint8_t looks = 0;    // at what others may change, one after the other, that showed nothing new
};

struct Warp {
  std::vector<Group> groups;
  std::vector<std::unique_ptr<Frame>> frames, spare;
  std::vector<uint8_t> specials;  // registers that are the same in every block
  uint32_t alive = 0;
  uint32_t number = 0;

  Frame* enter(const Program& program);
  void leave(Frame* frame);  // one holder less
  bool ready() const;
};

}  // namespace vgpu
