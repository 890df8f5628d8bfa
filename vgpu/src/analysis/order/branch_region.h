// The instructions between a branch and the point where its lanes reconverge, if they compute in registers, and in own memory of
// the lanes at a fixed distance from a register: subroutines that they call, and inner branches whose lanes reconverge before,
// included.
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
  std::vector<LocalOperand> local_operands;  // of members; none writes their bases

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
