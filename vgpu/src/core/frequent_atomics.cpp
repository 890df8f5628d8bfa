// Finds the atomics that a thread executes often.
#include <algorithm>

#include "instruction_set.h"

namespace vgpu {
namespace {

constexpr long kMany = 4;  // atomics of a function, as of an unrolled loop

// Returns the positions that the instruction may branch to.
std::vector<uint32_t> targets_of(const DecodedFunction& function, const Instruction& i) {
  if (i.kind == InstructionKind::IndexedBranch) return function.branch_tables[static_cast<size_t>(i.imm)];
  const bool is_branch =
      i.kind == InstructionKind::ConditionalBranch || (i.kind == InstructionKind::Branch && i.variant == kJump);
  return is_branch ? std::vector<uint32_t>{static_cast<uint32_t>(i.imm)} : std::vector<uint32_t>();
}

}  // namespace

void mark_frequent_atomics(DecodedFunction& function) {
  std::vector<Instruction>& code = function.code;
  std::vector<size_t> loop_ends(code.size(), 0);  // by the first instruction of a loop: behind its last
  for (size_t k = 0; k < code.size(); k++)
    for (uint32_t target : targets_of(function, code[k]))
      if (target <= k) loop_ends[target] = k + 1;
  const auto uses_old_value = [](const Instruction& i) { return i.old_value == OldValue::Used; };
  const bool has_many = std::count_if(code.begin(), code.end(), uses_old_value) > kMany;
  size_t end = 0;
  for (size_t k = 0; k < code.size(); k++) {
    end = std::max(end, loop_ends[k]);
    code[k].is_frequent = uses_old_value(code[k]) && (k < end || has_many);
  }
}

}  // namespace vgpu
