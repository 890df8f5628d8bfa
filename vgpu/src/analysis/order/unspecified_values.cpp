// Follows unspecified values through the registers and the own memory of a warp's lanes.
#include "unspecified_values.h"

#include <algorithm>

namespace vgpu {
namespace {

constexpr uint32_t kRegisterBytes = 4;

}  // namespace

uint32_t UnspecifiedValues::lanes_of(uint32_t offset) const {
  for (const Register& entry : registers_)
    if (entry.offset == offset) return entry.lanes;
  return 0;
}

void UnspecifiedValues::set_lanes(uint32_t offset, uint32_t lanes) {
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

uint32_t UnspecifiedValues::lanes_reading(const RegisterFlows& flows, size_t index) const {
  uint32_t lanes = 0;
  flows.for_each_read(index, [&](uint32_t offset) { lanes |= lanes_of(offset); });
  return lanes;
}

// Returns whether the lanes' addresses are specified, and within their own memory.
bool UnspecifiedValues::is_within(const WarpContext& warp, const LocalOperand& operand, uint32_t lanes) const {
  bool is_within = !(lanes_of(operand.base) & lanes);
  for_each_lane(lanes, [&](uint32_t lane) { is_within &= operand.is_within(warp, lane); });
  return is_within;
}

void UnspecifiedValues::mark_stored(const WarpContext& warp, const LocalOperand& operand, uint32_t lanes) {
  for_each_lane(lanes, [&](uint32_t lane) {
    std::fill_n(own_memory_.find(warp, operand.address(warp, lane)), operand.bytes, ByteState::Unspecified);
  });
}

// Lanes of the group that have left the region of an unspecified branch: what the region writes is unspecified.
void UnspecifiedValues::reconverge(const WarpContext& warp, uint32_t index, uint32_t group) {
  for (UnspecifiedBranch& branch : branches_) {
    if (branch.region->contains(index)) continue;
    const uint32_t lanes = branch.lanes & group;
    for (uint32_t offset : branch.region->writes) set_lanes(offset, lanes_of(offset) | lanes);
    for (const LocalOperand& local : branch.region->local_operands)
      if (local.is_stored) mark_stored(warp, local, lanes);
    branch.lanes &= ~group;
  }
  branches_.erase(
      std::remove_if(branches_.begin(), branches_.end(), [](const UnspecifiedBranch& branch) { return !branch.lanes; }),
      branches_.end());
}

// Returns the region of a branch that is unspecified in these lanes; nullptr: it has none, or its own memory cannot be followed.
const BranchRegion* UnspecifiedValues::enter_region(const DecodedFunction& function, const WarpContext& warp,
                                                    const Instruction& i, uint32_t lanes, BranchRegions& regions) const {
  if (i.kind != InstructionKind::Branch && i.kind != InstructionKind::ConditionalBranch) return nullptr;
  if (!function.runs_in_lockstep) return nullptr;  // nothing marks where lanes reconverge
  const BranchRegion* region = regions.region_of(function, static_cast<uint32_t>(&i - function.code.data()));
  if (!region) return nullptr;
  const auto is_followed = [&](const LocalOperand& local) { return is_within(warp, local, lanes); };
  const auto& operands = region->local_operands;
  if (!std::all_of(operands.begin(), operands.end(), is_followed)) return nullptr;
  return region;
}

const UnspecifiedValues::Origin* UnspecifiedValues::step(const DecodedFunction& function, const WarpContext& warp,
                                                         const Instruction& i, uint32_t group, BranchRegions& regions) {
  if (!function.contains(i)) return &origin_;  // a called function has registers of its own
  const RegisterFlows& flows = function.flows;
  const size_t index = static_cast<size_t>(&i - function.code.data());
  const uint32_t active = warp.active_mask;
  if (!branches_.empty()) reconverge(warp, static_cast<uint32_t>(index), group);
  // An unspecified guard: whether the lane executes the instruction is unspecified.
  const uint32_t maybe_active = i.guard < 0 ? 0 : lanes_of(static_cast<uint32_t>(i.guard)) & group;
  const uint32_t unspecified = (lanes_reading(flows, index) & active) | maybe_active;
  const ValueFlow flow = flows.flow(index);
  if (flow == ValueFlow::Store || flow == ValueFlow::Shuffle) {
    uint32_t address_lanes = 0;
    flows.for_each_address_read(index, [&](uint32_t offset) { address_lanes |= lanes_of(offset); });
    return maybe_active || address_lanes & active ? &origin_ : nullptr;
  }
  if (is_local(flow)) {
    const LocalOperand operand = local_operand(i, flow);
    if (lanes_of(i.a) & active || !is_within(warp, operand, maybe_active)) return &origin_;
    if (operand.is_stored) mark_stored(warp, operand, maybe_active);
  } else if (flow == ValueFlow::Other && unspecified) {
    const BranchRegion* region = enter_region(function, warp, i, unspecified, regions);
    if (!region) return &origin_;
    branches_.push_back({region, unspecified});
  }
  flows.for_each_write(index, [&](uint32_t offset) { set_lanes(offset, (lanes_of(offset) & ~active) | unspecified); });
  return nullptr;
}

void UnspecifiedValues::shuffle(const DecodedFunction& function, const Instruction& i, uint32_t active,
                                const ShuffleSources& sources) {
  if (sources.unspecified) origin_ = {Origin::Shuffle, i.position};
  const uint32_t value = lanes_of(i.a), operands = (lanes_of(i.b) | lanes_of(i.c) | lanes_of(i.e)) & active;
  uint32_t result = sources.unspecified | operands;
  for_each_lane(active, [&](uint32_t lane) { result |= (value >> sources.lane[lane] & 1) << lane; });
  const size_t index = static_cast<size_t>(&i - function.code.data());
  // The predicate, which tells whether the source is in bounds, depends on the other operands alone.
  const uint32_t predicate = i.vector_registers[0];
  function.flows.for_each_write(index, [&](uint32_t offset) {
    set_lanes(offset, (lanes_of(offset) & ~active) | (offset == predicate ? operands : result));
  });
}

bool UnspecifiedValues::mark_loaded(const DecodedFunction& function, const Instruction& i, uint32_t lane, uint32_t offset,
                                    uint32_t bytes) {
  if (function.flows.empty() || !function.contains(i)) return false;
  const size_t index = static_cast<size_t>(&i - function.code.data());
  const uint32_t first = offset / kRegisterBytes, last = (offset + bytes - 1) / kRegisterBytes;
  if (last >= function.flows.writes(index)) return false;
  for (uint32_t k = first; k <= last; k++) {
    const uint32_t written = function.flows.write(index, k);
    set_lanes(written, lanes_of(written) | 1u << lane);
  }
  return true;
}

bool UnspecifiedValues::load(const DecodedFunction& function, const Instruction& i, uint32_t lane, uint32_t offset,
                             uint32_t bytes) {
  if (!mark_loaded(function, i, lane, offset, bytes)) return false;
  origin_ = {Origin::Load, i.position};
  return true;
}

uint32_t UnspecifiedValues::unspecified_parts(const WarpContext& warp, const RegisterValues& values, uint32_t lane) const {
  uint32_t parts = 0;
  if (registers_.empty()) return parts;
  for (uint32_t k = 0; k < values.count; k++)
    parts |= (lanes_of(static_cast<uint32_t>(values.parts[k] - warp.frame)) >> lane & 1) << k;
  return parts;
}

bool UnspecifiedValues::access_own_memory(const DecodedFunction& function, const WarpContext& warp, const Instruction& i,
                                          const MemoryAccess& access, uint32_t lane) {
  ByteState* const states = own_memory_.find(warp, access.addresses[lane]);
  if (!states) return true;
  bool is_followed = true;
  const bool is_guard_unspecified = i.guard >= 0 && lanes_of(static_cast<uint32_t>(i.guard)) >> lane & 1;
  const uint32_t unspecified = is_guard_unspecified ? ~0u : unspecified_parts(warp, access.values, lane);
  const uint32_t part_bytes =
      access.kind == AccessKind::Read ? std::min(kRegisterBytes, access.bytes) : access.values.part_bytes(access.bytes);
  for (uint32_t begin = 0, part = 0; begin < access.bytes; begin += part_bytes, part++) {
    const uint32_t bytes = std::min(part_bytes, access.bytes - begin);
    ByteState* const first = states + begin;
    if (access.kind != AccessKind::Read) {
      std::fill_n(first, bytes, unspecified >> part & 1 ? ByteState::Unspecified : ByteState::Written);
    } else if (std::find(first, first + bytes, ByteState::Unwritten) != first + bytes) {
      is_followed &= load(function, i, lane, begin, bytes);
    } else if (std::find(first, first + bytes, ByteState::Unspecified) != first + bytes) {
      is_followed &= mark_loaded(function, i, lane, begin, bytes);
    }
  }
  return is_followed;
}

}  // namespace vgpu
