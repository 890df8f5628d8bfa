// Resolves the addresses of an instruction, lane by lane, and checks that the lane may access them.
#include "access.h"

#include <algorithm>

#include "instruction_set.h"

namespace vgpu {
namespace {

bool permits(const Allocation& allocation, bool writes) { return !writes || allocation.access == Access::ReadWrite; }

// The warp remembers two allocations until one is freed or protected, which changes the memory's generation.
bool is_within_allocation(WarpContext& warp, uint64_t begin, uint64_t end, bool writes) {
  if (warp.generation != warp.memory->generation())
    warp.recent_allocations[0] = warp.recent_allocations[1] = {}, warp.generation = warp.memory->generation();
  for (const Allocation& recent : warp.recent_allocations)
    if (recent.contains(begin, end)) return permits(recent, writes);
  const Allocation allocation = warp.memory->find(begin);
  if (!allocation.contains(begin, end)) return false;
  warp.recent_allocations[1] = warp.recent_allocations[0], warp.recent_allocations[0] = allocation;
  return permits(allocation, writes);
}

uint64_t to_address(const uint8_t* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

// An Allocation serves as a range here, of which only begin and end count.
bool is_accessible(WarpContext& warp, uint32_t lane, uint64_t address, uint32_t bytes, bool writes) {
  uint64_t end = address + bytes;
  if (Allocation{to_address(warp.shared), to_address(warp.shared) + warp.shared_bytes, false}.contains(address, end))
    return true;
  for (const PerLaneMemory& memory : warp.per_lane_memory) {
    uint64_t begin = to_address(memory.base) + uint64_t(lane) * memory.bytes_per_lane;
    if (Allocation{begin, begin + memory.bytes_per_lane, false}.contains(address, end)) return true;
  }
  if (!warp.has_lane_parameters &&
      Allocation{to_address(warp.parameters), to_address(warp.parameters) + warp.parameter_bytes, false}.contains(address, end))
    return !writes;  // a kernel's parameters lie in constant memory
  return is_within_allocation(warp, address, end, writes);
}

namespace {

// Machine code has no atomics of 16 bits: it uses those of aligned words, of which the last may only begin in an allocation.
bool is_last_half(WarpContext& warp, uint64_t address, uint32_t bytes, bool writes) {
  return bytes == 4 && warp.convergence && is_within_allocation(warp, address, address + 2, writes);
}

// Addresses are compared as signed numbers: those beyond the user half of the address space are negative, so not allocated.
template <class F> bool check_generic(WarpContext& warp, F address_of, uint32_t bytes, uint8_t* addresses[kWarpSize],
                                      bool writes) {
  int64_t low = INT64_MAX, high = INT64_MIN, address_bits = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    int64_t address = static_cast<int64_t>(address_of(l));
    low = std::min(low, address), high = std::max(high, address), address_bits |= address;
    addresses[l] = reinterpret_cast<uint8_t*>(address);
  });
  if (address_bits & (bytes - 1)) {
    warp.set_fault(KernelFault::Misaligned, static_cast<uint64_t>(address_bits));
    return false;
  }
  if (low > 0 && is_within_allocation(warp, static_cast<uint64_t>(low), static_cast<uint64_t>(high) + bytes, writes))
    return true;
  bool is_ok = true;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const uint64_t address = to_address(addresses[l]);
    if (is_accessible(warp, l, address, bytes, writes) || is_last_half(warp, address, bytes, writes)) return;
    warp.set_fault(writes && is_accessible(warp, l, to_address(addresses[l]), bytes) ? KernelFault::ReadOnly
                                                                                     : KernelFault::OutOfBounds,
                   to_address(addresses[l])),
        is_ok = false;
  });
  return is_ok;
}

// Sets the fault of the first lane whose offset is invalid in a space of `size` bytes; returns false.
bool fail_offsets(WarpContext& warp, const uint32_t offset[kWarpSize], uint32_t bytes, uint32_t size) {
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    if (offset[l] > size || size - offset[l] < bytes) warp.set_fault(KernelFault::OutOfBounds, offset[l]);
    else if (offset[l] & (bytes - 1)) warp.set_fault(KernelFault::Misaligned, offset[l]);
  });
  return false;
}

template <class B>
void compute_offsets(WarpContext& warp, const Instruction& i, uint32_t offset[kWarpSize], uint32_t& highest,
                     uint32_t& offset_bits) {
  const B* base = lane_values<B>(warp, i.a);
  uint32_t immediate = static_cast<uint32_t>(i.imm);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    offset[l] = static_cast<uint32_t>(base[l]) + immediate;
    highest = std::max(highest, offset[l]), offset_bits |= offset[l];
  });
}

// The memory of a state space other than the generic one.
struct SpaceMemory {
  uint8_t* begin;
  uint32_t size;
  bool is_per_lane;  // each lane has `size` bytes of its own
};

bool place_offsets(WarpContext& warp, const uint32_t offset[kWarpSize], uint32_t highest, uint32_t offset_bits, uint32_t bytes,
                   const SpaceMemory& memory, uint8_t* addresses[kWarpSize]) {
  const uint32_t size = memory.size;
  if (offset_bits & (bytes - 1) || highest > size || size - highest < bytes) return fail_offsets(warp, offset, bytes, size);
  const uint64_t stride = memory.is_per_lane ? size : 0;
  for_each_lane(warp.active_mask, [=](uint32_t l) { addresses[l] = memory.begin + offset[l] + l * stride; });
  return true;
}

// i.a, i.e: the register of the base and its bytes per lane, 0 if there is none; i.imm: the offset.
bool resolve_in_space(WarpContext& warp, const Instruction& i, uint32_t bytes, const SpaceMemory& memory,
                      uint8_t* addresses[kWarpSize]) {
  uint32_t offset[kWarpSize], highest = 0, offset_bits = 0;
  if (i.e == 8) compute_offsets<uint64_t>(warp, i, offset, highest, offset_bits);
  else if (i.e == 4) compute_offsets<uint32_t>(warp, i, offset, highest, offset_bits);
  else std::fill_n(offset, kWarpSize, highest = offset_bits = static_cast<uint32_t>(i.imm));
  return place_offsets(warp, offset, highest, offset_bits, bytes, memory, addresses);
}

SpaceMemory memory_of_space(const WarpContext& warp, AccessSpace space) {
  switch (space) {
    case AccessSpace::Shared: return {warp.shared, warp.shared_bytes, false};
    case AccessSpace::Local: return {warp.local, warp.local_bytes, true};
    case AccessSpace::Param: return {warp.parameters, warp.parameter_bytes, warp.has_lane_parameters};
    default: return {warp.scratch, warp.scratch_bytes, true};
  }
}

}  // namespace

bool check_addresses(WarpContext& warp, const uint64_t* address, uint32_t bytes, uint8_t* addresses[kWarpSize], bool writes) {
  return check_generic(warp, [=](uint32_t l) { return address[l]; }, bytes, addresses, writes);
}

bool check_addresses(WarpContext& warp, const uint32_t* halves, uint64_t offset, uint32_t bytes, uint8_t* addresses[kWarpSize],
                     bool writes) {
  const auto address_of = [=](uint32_t l) { return (halves[l] | uint64_t(halves[l + kWarpSize]) << 32) + offset; };
  return check_generic(warp, address_of, bytes, addresses, writes);
}

bool check_offsets(WarpContext& warp, AccessSpace space, const uint32_t* offset, uint32_t bytes,
                   uint8_t* addresses[kWarpSize]) {
  uint32_t highest = 0, offset_bits = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) { highest = std::max(highest, offset[l]), offset_bits |= offset[l]; });
  return place_offsets(warp, offset, highest, offset_bits, bytes, memory_of_space(warp, space), addresses);
}

bool resolve_addresses(WarpContext& warp, const Instruction& i, AccessSpace space, uint32_t bytes,
                       uint8_t* addresses[kWarpSize], bool writes) {
  if (space != AccessSpace::Generic) return resolve_in_space(warp, i, bytes, memory_of_space(warp, space), addresses);
  const uint64_t* base = lane_values<uint64_t>(warp, i.a);
  const uint64_t offset = static_cast<uint64_t>(i.imm);
  return check_generic(warp, [=](uint32_t l) { return base[l] + offset; }, bytes, addresses, writes);
}

}  // namespace vgpu
