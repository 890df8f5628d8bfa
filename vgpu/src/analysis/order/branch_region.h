// The region of a branch: the instructions between it and the point where its lanes reconverge, with inner branches and called
// subroutines.  There is one only if these compute in registers, and in the lanes' own (local) memory at a fixed distance
// from a register's value.  It tells unspecified_values.h what may differ if an unspecified value decides the branch.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

// Bytes of each lane's own memory that an instruction loads or stores.
struct LocalOperand {
  uint32_t base, offset;  // a register, and the distance from its value
  uint32_t bytes;
  bool is_stored;

  uint32_t begin(const WarpContext& warp, uint32_t lane) const;  // offset in the lane's own memory
  bool is_within(const WarpContext& warp, uint32_t lane) const;
  const uint8_t* address(const WarpContext& warp, uint32_t lane) const;
};

LocalOperand local_operand(const Instruction& i, ValueFlow flow);

struct BranchRegion {
  std::vector<uint32_t> members;  // indices, in ascending order
  std::vector<uint32_t> writes;  // registers that members write
  std::vector<LocalOperand> local_operands;  // of members; no member writes a register that is a base

  bool contains(uint32_t index) const;
};

// The regions of a launch's branches, each found once.
class BranchRegions {
 public:
  void clear() { regions_.clear(); }
  // Returns nullptr if what follows the branch at `index` is more than arithmetic and branches forward, or does not reconverge.
  const BranchRegion* region_of(const DecodedFunction& function, uint32_t index);

 private:
  struct Entry {
    bool exists = false;
    BranchRegion region;
  };
  std::map<const Instruction*, Entry> regions_;
};

}  // namespace vgpu
