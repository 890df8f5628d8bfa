// Finds the region of a branch by a walk over its paths.
#include "branch_region.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace vgpu {
namespace {

constexpr size_t kMaxMembers = 1024;

bool is_branch(const Instruction& i) {
  return i.kind == InstructionKind::Branch || i.kind == InstructionKind::ConditionalBranch;
}

// BSYNC, in machine code the only WarpSync with `execute`, reconverges the lanes of the convergence barrier i.b, and does
// nothing else.  BSSY, a Plain instruction, sets the barrier i.d.
bool reconverges(const Instruction& i) { return i.kind == InstructionKind::WarpSync && i.execute; }

// Collects the members of the region of a branch by a walk over all paths behind it.
class Walk {
 public:
  Walk(const DecodedFunction& function, uint32_t branch) : function_(function) {
    remaining_ = {branch + 1, static_cast<uint32_t>(function.code[branch].imm)};
    is_region_ = remaining_.back() > branch;
  }

  // Returns false if the branch has no region (branch_region.h).
  bool run() {
    while (is_region_ && !remaining_.empty()) {
      const uint32_t index = remaining_.back();
      remaining_.pop_back();
      visit(index, function_.code[index]);
    }
    return is_region_ && end_ && !is_set_inside(function_.code[end_].b);
  }
  const std::set<uint32_t>& members() const { return members_; }

 private:
  void visit(uint32_t index, const Instruction& i) {
    if (reconverges(i) && !is_set_inside(i.b)) {
      is_region_ = !end_ || end_ == index;
      end_ = index;
      return;
    }
    if (!members_.insert(index).second) return;
    const ValueFlow flow = function_.flows.flow(index);
    const bool computes = i.kind == InstructionKind::Plain && (flow == ValueFlow::Lanewise || is_local(flow));
    const bool is_call = i.kind == InstructionKind::Branch && i.variant == kSubroutineCall,
               is_return = i.kind == InstructionKind::ComputedBranch && i.variant == kSubroutineReturn;
    is_region_ = members_.size() <= kMaxMembers && (computes || reconverges(i) || is_branch(i) || is_return);
    // A subroutine returns to the instruction behind its call, so that no path goes on from the return itself.
    if (computes || reconverges(i) || i.guard >= 0 || is_call) remaining_.push_back(index + 1);
    if (!is_branch(i)) return;
    remaining_.push_back(static_cast<uint32_t>(i.imm));
    if (remaining_.back() <= index) is_region_ = false;  // a loop, which may not end
  }

  // Whether an instruction of the region sets this convergence barrier: then lanes of one path reconverge there.
  bool is_set_inside(uint32_t barrier) const {
    return std::any_of(members_.begin(), members_.end(), [&](uint32_t member) {
      const Instruction& i = function_.code[member];
      return i.kind == InstructionKind::Plain && i.d == barrier;
    });
  }

  const DecodedFunction& function_;
  std::vector<uint32_t> remaining_;
  std::set<uint32_t> members_;
  uint32_t end_ = 0;  // index of the instruction at which all paths meet, and where the lanes reconverge; 0: not reached
  bool is_region_ = true;
};

// Returns what members access of own memory.
std::vector<LocalOperand> local_operands(const DecodedFunction& function, const std::set<uint32_t>& members) {
  std::vector<LocalOperand> operands;
  for (uint32_t member : members) {
    const ValueFlow flow = function.flows.flow(member);
    if (is_local(flow)) operands.push_back(local_operand(function.code[member], flow));
  }
  return operands;
}

}  // namespace

LocalOperand local_operand(const Instruction& i, ValueFlow flow) {
  return {i.a, static_cast<uint32_t>(i.imm), i.count, flow == ValueFlow::LocalStore};
}

uint32_t LocalOperand::begin(const WarpContext& warp, uint32_t lane) const {
  uint32_t value;
  std::memcpy(&value, warp.frame + base + lane * sizeof value, sizeof value);
  return value + offset;
}

bool LocalOperand::is_within(const WarpContext& warp, uint32_t lane) const {
  const uint32_t first = begin(warp, lane);
  return first % bytes == 0 && first < warp.local_bytes && warp.local_bytes - first >= bytes;
}

const uint8_t* LocalOperand::address(const WarpContext& warp, uint32_t lane) const {
  return warp.local + size_t(lane) * warp.local_bytes + begin(warp, lane);
}

bool BranchRegion::contains(uint32_t index) const { return std::binary_search(members.begin(), members.end(), index); }

const BranchRegion* BranchRegions::region_of(const DecodedFunction& function, uint32_t index) {
  const auto [entry, is_new] = regions_.try_emplace(&function.code[index]);
  Entry& found = entry->second;
  if (!is_new) return found.exists ? &found.region : nullptr;
  Walk walk(function, index);
  if (walk.run()) {
    found.exists = true;
    found.region.members.assign(walk.members().begin(), walk.members().end());
    std::set<uint32_t> writes;
    for (uint32_t member : walk.members())
      function.flows.for_each_write(member, [&](uint32_t offset) { writes.insert(offset); });
    found.region.writes.assign(writes.begin(), writes.end());
    found.region.local_operands = local_operands(function, walk.members());
    for (const LocalOperand& local : found.region.local_operands) found.exists &= !writes.count(local.base);
  }
  return found.exists ? &found.region : nullptr;
}

}  // namespace vgpu
