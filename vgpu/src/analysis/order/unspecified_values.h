// The registers and the own memory of a warp's lanes that hold unspecified values: those that a shuffle takes from a lane that
// takes no part, those that a load takes from memory that nothing has written, and what is computed from them.
//
// Accepts: an unspecified value that is computed with, exchanged, overwritten, and kept in own or shared memory, but reaches no
// address, global memory, atomic or vote; and that decides a branch, if both paths only compute until the lanes reconverge: what
// they write is then unspecified, too.  Shared memory to which it is stored counts as not written (OrderProver::store_unspecified).
// Sound: each instruction's reads and writes are known (core/register_flow.h), so a register that is not among these has the same
// value whatever the unspecified values are; then so have all addresses, stored values and branches.
// Example: a reduction by shuffles in a block of 8 threads.  Lane 7 adds what lane 11 would have; only lane 0 stores its sum.
#pragma once
#include <cstdint>
#include <vector>

#include "branch_region.h"
#include "core/memory_access.h"
#include "lane_memory.h"

namespace vgpu {

class UnspecifiedValues {
 public:
  // The latest instruction that made a value unspecified.
  struct Origin {
    enum Kind : uint8_t { Shuffle, Load } kind = Shuffle;
    uint32_t position = 0;
  };

  bool empty() const { return registers_.empty() && branches_.empty(); }

  // Adds the effect of an instruction on the lanes of a group that reaches it.  Returns the origin if an unspecified value is used
  // where it cannot be followed; nullptr: none is.
  const Origin* step(const DecodedFunction& function, const WarpContext& warp, const Instruction& i, uint32_t group,
                     BranchRegions& regions);
  void shuffle(const DecodedFunction& function, const Instruction& i, uint32_t active, const ShuffleSources& sources);
  // Adds that some of the bytes `offset` to `offset + bytes` of what a lane loads are unspecified, since nothing has written them.
  // Returns false, and does nothing, if it is not known which register gets them.
  bool load(const DecodedFunction& function, const Instruction& i, uint32_t lane, uint32_t offset, uint32_t bytes);
  // Adds a lane's access to its own memory.  Returns false if an unspecified value gets where it cannot be followed.
  bool access_own_memory(const DecodedFunction& function, const WarpContext& warp, const Instruction& i,
                         const MemoryAccess& access, uint32_t lane);
  // Returns which of the registers that a lane stores are unspecified: bit k for values.parts[k].
  uint32_t unspecified_parts(const WarpContext& warp, const RegisterValues& values, uint32_t lane) const;
  const Origin& origin() const { return origin_; }
  LaneMemory& own_memory() { return own_memory_; }

 private:
  struct Register {
    uint32_t offset, lanes;  // lanes whose value is unspecified
  };
  // A branch that an unspecified value decides, and the lanes that have not reconverged after it.
  struct UnspecifiedBranch {
    const BranchRegion* region;
    uint32_t lanes;
  };
  bool is_within(const WarpContext& warp, const LocalOperand& operand, uint32_t lanes) const;
  void mark_stored(const WarpContext& warp, const LocalOperand& operand, uint32_t lanes);
  void reconverge(const WarpContext& warp, uint32_t index, uint32_t group);
  const BranchRegion* enter_region(const DecodedFunction& function, const WarpContext& warp, const Instruction& i,
                                   uint32_t lanes, BranchRegions& regions) const;
  bool mark_loaded(const DecodedFunction& function, const Instruction& i, uint32_t lane, uint32_t offset, uint32_t bytes);
  uint32_t lanes_of(uint32_t offset) const;
  void set_lanes(uint32_t offset, uint32_t lanes);
  // Returns the lanes that read an unspecified value.
  uint32_t lanes_reading(const RegisterFlows& flows, size_t index) const;

  std::vector<Register> registers_;  // few, without order
  LaneMemory own_memory_;
  std::vector<UnspecifiedBranch> branches_;
  Origin origin_;
};

}  // namespace vgpu
