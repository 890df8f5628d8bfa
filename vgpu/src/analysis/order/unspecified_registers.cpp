// Follows unspecified values through the registers of a warp.
#include "unspecified_registers.h"

#include <algorithm>

namespace vgpu {

uint32_t UnspecifiedRegisters::lanes_of(uint32_t offset) const {
  for (const Register& entry : registers_)
    if (entry.offset == offset) return entry.lanes;
  return 0;
}

void UnspecifiedRegisters::set_lanes(uint32_t offset, uint32_t lanes) {
  const auto entry = std::find_if(registers_.begin(), registers_.end(), [=](const Register& r) { return r.offset == offset; });
  if (entry == registers_.end()) {
    if (lanes) registers_.push_back({offset, lanes});
  } else if (lanes) {
    entry->lanes = lanes;
  } else {
    *entry = registers_.back();
    registers_.pop_back();
  }
}

uint32_t UnspecifiedRegisters::lanes_reading(const RegisterFlows& flows, size_t index) const {
  uint32_t lanes = 0;
  flows.for_each_read(index, [&](uint32_t offset) { lanes |= lanes_of(offset); });
  return lanes;
}

// Lanes of the group that have left the region of an unspecified branch: what the region writes is unspecified.
void UnspecifiedRegisters::reconverge(uint32_t index, uint32_t group) {
  for (UnspecifiedBranch& branch : branches_) {
    if (branch.region->contains(index)) continue;
    for (uint32_t offset : branch.region->writes) set_lanes(offset, lanes_of(offset) | (branch.lanes & group));
    branch.lanes &= ~group;
  }
  branches_.erase(
      std::remove_if(branches_.begin(), branches_.end(), [](const UnspecifiedBranch& branch) { return !branch.lanes; }),
      branches_.end());
}

const UnspecifiedRegisters::Origin* UnspecifiedRegisters::step(const DecodedFunction& function, const Instruction& i,
                                                               uint32_t active, uint32_t group, BranchRegions& regions) {
  const RegisterFlows& flows = function.flows;
  const size_t index = static_cast<size_t>(&i - function.code.data());
  if (!branches_.empty()) reconverge(static_cast<uint32_t>(index), group);
  // An unspecified guard: whether the lane executes the instruction is unspecified.
  const uint32_t maybe_active = i.guard < 0 ? 0 : lanes_of(static_cast<uint32_t>(i.guard)) & group;
  const uint32_t unspecified = (lanes_reading(flows, index) & active) | maybe_active;
  const ValueFlow flow = flows.flow(index);
  if (flow == ValueFlow::Shuffle) return maybe_active ? &origin_ : nullptr;
  if (flow == ValueFlow::Other && unspecified) {
    const bool is_branch = i.kind == InstructionKind::Branch || i.kind == InstructionKind::ConditionalBranch;
    const BranchRegion* region = is_branch ? regions.region_of(function, static_cast<uint32_t>(index)) : nullptr;
    if (!region) return &origin_;
    branches_.push_back({region, unspecified});
  }
  flows.for_each_write(index, [&](uint32_t offset) { set_lanes(offset, (lanes_of(offset) & ~active) | unspecified); });
  return nullptr;
}

void UnspecifiedRegisters::shuffle(const DecodedFunction& function, const Instruction& i, uint32_t active,
                                   const ShuffleSources& sources) {
  if (sources.unspecified) origin_ = {Origin::Shuffle, i.line};
  const uint32_t value = lanes_of(i.a), operands = (lanes_of(i.b) | lanes_of(i.c)) & active;
  uint32_t result = sources.unspecified | operands;
  for_each_lane(active, [&](uint32_t lane) { result |= (value >> sources.lane[lane] & 1) << lane; });
  const size_t index = static_cast<size_t>(&i - function.code.data());
  // The predicate, which tells whether the source is in bounds, depends on the other operands alone.
  const uint32_t predicate = i.vector_registers[0];
  function.flows.for_each_write(index, [&](uint32_t offset) {
    set_lanes(offset, (lanes_of(offset) & ~active) | (offset == predicate ? operands : result));
  });
}

bool UnspecifiedRegisters::load(const DecodedFunction& function, const Instruction& i, uint32_t lane, uint32_t offset,
                                uint32_t bytes) {
  constexpr uint32_t kRegisterBytes = 4;
  if (function.flows.empty()) return false;
  const size_t index = static_cast<size_t>(&i - function.code.data());
  const uint32_t first = offset / kRegisterBytes, last = (offset + bytes - 1) / kRegisterBytes;
  if (last >= function.flows.writes(index)) return false;
  for (uint32_t k = first; k <= last; k++) {
    const uint32_t written = function.flows.write(index, k);
    set_lanes(written, lanes_of(written) | 1u << lane);
  }
  origin_ = {Origin::Load, i.line};
  return true;
}

}  // namespace vgpu
