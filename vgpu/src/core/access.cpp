// Resolves the addresses of an instruction, lane by lane, and checks that the lane may access them.
#include "access.h"

#include <algorithm>

#include "instruction_set.h"

namespace vgpu {
namespace {

bool permits(const Allocation& extent, bool writes) { return !writes || extent.access == Access::All; }

bool known_extent(WarpContext& warp, uint64_t low, uint64_t behind, bool writes) {
  if (warp.generation != warp.memory->generation())
    warp.recent_allocations[0] = warp.recent_allocations[1] = {}, warp.generation = warp.memory->generation();
  if (warp.recent_allocations[0].contains(low, behind)) return permits(warp.recent_allocations[0], writes);
  std::swap(warp.recent_allocations[0], warp.recent_allocations[1]);
  if (warp.recent_allocations[0].contains(low, behind)) return permits(warp.recent_allocations[0], writes);
  Allocation found = warp.memory->find(low);
  if (!found.contains(low, behind)) return false;
  warp.recent_allocations[0] = found;
  return permits(found, writes);
}

uint64_t number(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

bool is_accessible(WarpContext& warp, uint32_t lane, uint64_t address, uint32_t bytes, bool writes) {
  uint64_t behind = address + bytes;
  if (Allocation{number(warp.shared), number(warp.shared) + warp.shared_bytes, false}.contains(address, behind)) return true;
  for (const PerLaneMemory& one : warp.per_lane_memory) {
    uint64_t own = number(one.base) + uint64_t(lane) * one.bytes_per_lane;
    if (Allocation{own, own + one.bytes_per_lane, false}.contains(address, behind)) return true;
  }
  if (!warp.has_lane_parameters &&
      Allocation{number(warp.parameters), number(warp.parameters) + warp.parameter_bytes, false}.contains(address, behind))
    return true;
  return known_extent(warp, address, behind, writes);
}

namespace {

// As signed numbers: those beyond any process's are negative, and lie in no allocation.
template <class F> bool generic(WarpContext& warp, F address_of, uint32_t bytes, uint8_t* at[kWarpSize], bool writes) {
  int64_t low = INT64_MAX, high = INT64_MIN, odd = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    int64_t address = static_cast<int64_t>(address_of(l));
    low = std::min(low, address), high = std::max(high, address), odd |= address;
    at[l] = reinterpret_cast<uint8_t*>(address);
  });
  if (odd & (bytes - 1)) {
    warp.set_fault(KernelFault::Misaligned, static_cast<uint64_t>(odd));
    return false;
  }
  if (low > 0 && known_extent(warp, static_cast<uint64_t>(low), static_cast<uint64_t>(high) + bytes, writes)) return true;
  bool fine = true;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    if (is_accessible(warp, l, number(at[l]), bytes, writes)) return;
    warp.set_fault(writes && is_accessible(warp, l, number(at[l]), bytes) ? KernelFault::ReadOnly : KernelFault::OutOfBounds,
                   number(at[l])),
        fine = false;
  });
  return fine;
}

// The offsets of a space of `size` bytes: the first lane's fault is told.
bool refused(WarpContext& warp, const uint32_t offset[kWarpSize], uint32_t bytes, uint32_t size) {
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    if (offset[l] > size || size - offset[l] < bytes) warp.set_fault(KernelFault::OutOfBounds, offset[l]);
    else if (offset[l] & (bytes - 1)) warp.set_fault(KernelFault::Misaligned, offset[l]);
  });
  return false;
}

template <class B>
void offsets(WarpContext& warp, const Instruction& i, uint32_t offset[kWarpSize], uint32_t& most, uint32_t& odd) {
  const B* base = lane_values<B>(warp, i.a);
  uint32_t by = static_cast<uint32_t>(i.imm);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    offset[l] = static_cast<uint32_t>(base[l]) + by;
    most = std::max(most, offset[l]), odd |= offset[l];
  });
}

// Where the offsets of a space lie.
struct Room {
  uint8_t* begin;
  uint32_t size;
  bool own;  // each lane has one
};

bool place(WarpContext& warp, const uint32_t offset[kWarpSize], uint32_t most, uint32_t odd, uint32_t bytes, const Room& room,
           uint8_t* at[kWarpSize]) {
  const uint32_t size = room.size;
  if (odd & (bytes - 1) || most > size || size - most < bytes) return refused(warp, offset, bytes, size);
  const uint64_t step = room.own ? size : 0;
  for_each_lane(warp.active_mask, [=](uint32_t l) { at[l] = room.begin + offset[l] + l * step; });
  return true;
}

bool within(WarpContext& warp, const Instruction& i, uint32_t bytes, const Room& room, uint8_t* at[kWarpSize]) {
  uint32_t offset[kWarpSize], most = 0, odd = 0;
  if (i.e == 8) offsets<uint64_t>(warp, i, offset, most, odd);
  else if (i.e == 4) offsets<uint32_t>(warp, i, offset, most, odd);
  else std::fill_n(offset, kWarpSize, most = odd = static_cast<uint32_t>(i.imm));
  return place(warp, offset, most, odd, bytes, room, at);
}

Room room_of(const WarpContext& warp, AccessSpace where) {
  switch (where) {
    case AccessSpace::Shared: return {warp.shared, warp.shared_bytes, false};
    case AccessSpace::Local: return {warp.local, warp.local_bytes, true};
    case AccessSpace::Param: return {warp.parameters, warp.parameter_bytes, warp.has_lane_parameters};
    default: return {warp.scratch, warp.scratch_bytes, true};
  }
}

}  // namespace

bool check_addresses(WarpContext& warp, const uint64_t* address, uint32_t bytes, uint8_t* at[kWarpSize], bool writes) {
  return generic(warp, [=](uint32_t l) { return address[l]; }, bytes, at, writes);
}

bool check_offsets(WarpContext& warp, AccessSpace where, const uint32_t* offset, uint32_t bytes, uint8_t* at[kWarpSize]) {
  uint32_t most = 0, odd = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) { most = std::max(most, offset[l]), odd |= offset[l]; });
  return place(warp, offset, most, odd, bytes, room_of(warp, where), at);
}

bool resolve_addresses(WarpContext& warp, const Instruction& i, AccessSpace where, uint32_t bytes, uint8_t* at[kWarpSize],
                       bool writes) {
  if (where != AccessSpace::Generic) return within(warp, i, bytes, room_of(warp, where), at);
  const uint64_t* base = lane_values<uint64_t>(warp, i.a);
  const uint64_t offset = static_cast<uint64_t>(i.imm);
  return generic(warp, [=](uint32_t l) { return base[l] + offset; }, bytes, at, writes);
}

}  // namespace vgpu
