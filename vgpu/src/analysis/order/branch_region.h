// The instructions between a branch and the point where its lanes reconverge, if they compute in registers alone: subroutines that
// they call, and inner branches whose lanes reconverge before, included.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

struct BranchRegion {
  std::vector<uint32_t> members;  // indices, in ascending order
  std::vector<uint32_t> writes;  // registers that members write

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
