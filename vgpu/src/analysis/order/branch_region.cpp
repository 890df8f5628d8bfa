// Finds the region of a branch by a walk over its paths.
#include "branch_region.h"

#include <algorithm>
#include <set>

namespace vgpu {
namespace {

constexpr size_t kMaxMembers = 1024;

bool is_branch(const Instruction& i) {
  return i.kind == InstructionKind::Branch || i.kind == InstructionKind::ConditionalBranch;
}

// A convergence barrier reconverges lanes, and does nothing else.
bool reconverges(const Instruction& i) { return i.kind == InstructionKind::WarpSync && i.execute; }

// Collects the members of the region of the branch at `branch`, and its end.  Returns false if it is not such a region.
bool collect(const DecodedFunction& function, uint32_t branch, std::set<uint32_t>& members, uint32_t& end) {
  std::vector<uint32_t> remaining = {branch + 1, static_cast<uint32_t>(function.code[branch].imm)};
  if (remaining.back() <= branch) return false;
  end = 0;
  while (!remaining.empty()) {
    const uint32_t index = remaining.back();
    const Instruction& i = function.code[index];
    remaining.pop_back();
    if (reconverges(i)) {
      if (end && end != index) return false;
      end = index;
      continue;
    }
    if (!members.insert(index).second) continue;
    const bool computes = i.kind == InstructionKind::Plain && function.flows.flow(index) == ValueFlow::Lanewise;
    if (members.size() > kMaxMembers || (!computes && !is_branch(i))) return false;
    if (computes || i.guard >= 0) remaining.push_back(index + 1);
    if (!is_branch(i)) continue;
    remaining.push_back(static_cast<uint32_t>(i.imm));
    if (remaining.back() <= index) return false;  // a loop, which may not end
  }
  return end != 0;
}

}  // namespace

bool BranchRegion::contains(uint32_t index) const { return std::binary_search(members.begin(), members.end(), index); }

const BranchRegion* BranchRegions::region_of(const DecodedFunction& function, uint32_t index) {
  const auto [entry, is_new] = regions_.try_emplace(&function.code[index]);
  Entry& found = entry->second;
  std::set<uint32_t> members;
  if (is_new && collect(function, index, members, found.region.end)) {
    found.exists = true;
    found.region.members.assign(members.begin(), members.end());
    std::set<uint32_t> writes;
    for (uint32_t member : members) function.flows.for_each_write(member, [&](uint32_t offset) { writes.insert(offset); });
    found.region.writes.assign(writes.begin(), writes.end());
  }
  return found.exists ? &found.region : nullptr;
}

}  // namespace vgpu
