#include "access.h"

#include <algorithm>

#include "instruction_set.h"

namespace vgpu {
namespace {

bool permits(const Allocation& extent, bool writes) { return !writes || extent.access == Access::All; }

bool known_extent(WarpContext& w, uint64_t low, uint64_t behind, bool writes) {
  if (w.generation != w.memory->generation())
    w.recent_allocations[0] = w.recent_allocations[1] = {}, w.generation = w.memory->generation();
  if (w.recent_allocations[0].contains(low, behind)) return permits(w.recent_allocations[0], writes);
  std::swap(w.recent_allocations[0], w.recent_allocations[1]);
  if (w.recent_allocations[0].contains(low, behind)) return permits(w.recent_allocations[0], writes);
  Allocation found = w.memory->find(low);
  if (!found.contains(low, behind)) return false;
  w.recent_allocations[0] = found;
  return permits(found, writes);
}

uint64_t number(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

bool is_accessible(WarpContext& w, uint32_t lane, uint64_t address, uint32_t bytes, bool writes) {
  uint64_t behind = address + bytes;
  if (Allocation{number(w.shared), number(w.shared) + w.shared_bytes, false}.contains(address, behind)) return true;
  for (const PerLaneMemory& one : w.per_lane_memory) {
    uint64_t own = number(one.base) + uint64_t(lane) * one.bytes_per_lane;
    if (Allocation{own, own + one.bytes_per_lane, false}.contains(address, behind)) return true;
  }
  if (!w.has_lane_parameters &&
      Allocation{number(w.parameters), number(w.parameters) + w.parameter_bytes, false}.contains(address, behind))
    return true;
  return known_extent(w, address, behind, writes);
}

namespace {

// As signed numbers: those beyond any process's are negative, and lie in no allocation.
template <class F> bool generic(WarpContext& w, F address_of, uint32_t bytes, uint8_t* at[kWarpSize], bool writes) {
  int64_t low = INT64_MAX, high = INT64_MIN, odd = 0;
  for_each_lane(w.active_mask, [&](uint32_t l) {
    int64_t address = static_cast<int64_t>(address_of(l));
    low = std::min(low, address), high = std::max(high, address), odd |= address;
    at[l] = reinterpret_cast<uint8_t*>(address);
  });
  if (odd & (bytes - 1)) {
    w.set_fault(Fault::Misaligned, static_cast<uint64_t>(odd));
    return false;
  }
  if (low > 0 && known_extent(w, static_cast<uint64_t>(low), static_cast<uint64_t>(high) + bytes, writes)) return true;
  bool fine = true;
  for_each_lane(w.active_mask, [&](uint32_t l) {
    if (is_accessible(w, l, number(at[l]), bytes, writes)) return;
    w.set_fault(writes && is_accessible(w, l, number(at[l]), bytes) ? Fault::ReadOnly : Fault::OutOfBounds, number(at[l])),
        fine = false;
  });
  return fine;
}

// The offsets of a space of `size` bytes: the first lane's fault is told.
bool refused(WarpContext& w, const uint32_t offset[kWarpSize], uint32_t bytes, uint32_t size) {
  for_each_lane(w.active_mask, [&](uint32_t l) {
    if (offset[l] > size || size - offset[l] < bytes) w.set_fault(Fault::OutOfBounds, offset[l]);
    else if (offset[l] & (bytes - 1)) w.set_fault(Fault::Misaligned, offset[l]);
  });
  return false;
}

template <class B>
void offsets(WarpContext& w, const Instruction& i, uint32_t offset[kWarpSize], uint32_t& most, uint32_t& odd) {
  const B* base = lane_values<B>(w, i.a);
  uint32_t by = static_cast<uint32_t>(i.imm);
  for_each_lane(w.active_mask, [&](uint32_t l) {
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

bool place(WarpContext& w, const uint32_t offset[kWarpSize], uint32_t most, uint32_t odd, uint32_t bytes, const Room& room,
           uint8_t* at[kWarpSize]) {
  const uint32_t size = room.size;
  if (odd & (bytes - 1) || most > size || size - most < bytes) return refused(w, offset, bytes, size);
  const uint64_t step = room.own ? size : 0;
  for_each_lane(w.active_mask, [=](uint32_t l) { at[l] = room.begin + offset[l] + l * step; });
  return true;
}

bool within(WarpContext& w, const Instruction& i, uint32_t bytes, const Room& room, uint8_t* at[kWarpSize]) {
  uint32_t offset[kWarpSize], most = 0, odd = 0;
  if (i.e == 8) offsets<uint64_t>(w, i, offset, most, odd);
  else if (i.e == 4) offsets<uint32_t>(w, i, offset, most, odd);
  else std::fill_n(offset, kWarpSize, most = odd = static_cast<uint32_t>(i.imm));
  return place(w, offset, most, odd, bytes, room, at);
}

Room room_of(const WarpContext& w, AccessSpace where) {
  switch (where) {
    case AccessSpace::Shared: return {w.shared, w.shared_bytes, false};
    case AccessSpace::Local: return {w.local, w.local_bytes, true};
    case AccessSpace::Param: return {w.parameters, w.parameter_bytes, w.has_lane_parameters};
    default: return {w.scratch, w.scratch_bytes, true};
  }
}

}  // namespace

bool check_addresses(WarpContext& w, const uint64_t* address, uint32_t bytes, uint8_t* at[kWarpSize], bool writes) {
  return generic(w, [=](uint32_t l) { return address[l]; }, bytes, at, writes);
}

bool check_offsets(WarpContext& w, AccessSpace where, const uint32_t* offset, uint32_t bytes, uint8_t* at[kWarpSize]) {
  uint32_t most = 0, odd = 0;
  for_each_lane(w.active_mask, [&](uint32_t l) { most = std::max(most, offset[l]), odd |= offset[l]; });
  return place(w, offset, most, odd, bytes, room_of(w, where), at);
}

bool resolve_addresses(WarpContext& w, const Instruction& i, AccessSpace where, uint32_t bytes, uint8_t* at[kWarpSize],
                       bool writes) {
  if (where != AccessSpace::Generic) return within(w, i, bytes, room_of(w, where), at);
  const uint64_t* base = lane_values<uint64_t>(w, i.a);
  const uint64_t offset = static_cast<uint64_t>(i.imm);
  return generic(w, [=](uint32_t l) { return base[l] + offset; }, bytes, at, writes);
}

}  // namespace vgpu
