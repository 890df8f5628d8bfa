// Passes memory accesses and barriers to the observers of a launch.
#include "observer.h"

#include "schedule.h"
#include "warp_context.h"

namespace vgpu {

Location location_of(const WarpContext& warp, const uint8_t* pointer) {
  if (is_shared(warp, pointer)) return {Location::Shared, warp.block, static_cast<uint64_t>(pointer - warp.shared)};
  uint64_t address = reinterpret_cast<uint64_t>(pointer);
  Allocation allocation = warp.memory->find(address);
  return allocation.end ? Location{Location::Global, allocation.number, address - allocation.whole_begin} : Location();
}

namespace {

constexpr uint8_t kAllLanes[kWarpSize] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                          16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// Sets the order of lanes to that of their numbers.
void order_by_number(uint32_t active_mask, uint8_t lanes[kWarpSize], MemoryAccess& access) {
  if (active_mask == kFullMask) {
    access.lane_order = kAllLanes, access.count = kWarpSize;
    return;
  }
  for (uint32_t remaining = active_mask; remaining; remaining &= remaining - 1)
    lanes[access.count++] = static_cast<uint8_t>(__builtin_ctz(remaining));
  access.lane_order = lanes;
}

}  // namespace

void notify_access(WarpContext& warp, const Instruction& i, MemoryAccess access) {
  uint8_t lanes[kWarpSize];
  if (!access.lane_order) order_by_number(warp.active_mask, lanes, access);
  warp.observer->on_access(warp, i, access);  // which may change whether it wants on_instruction() for this warp
  warp.follows_values = warp.observer->follows_values(warp);
}

void notify_local_access(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes,
                         uint8_t* const addresses[kWarpSize], RegisterValues values) {
  if (!warp.observer) return;
  uint8_t lanes[kWarpSize];
  MemoryAccess access = {kind, kWeak, OrderSensitivity::Nothing, bytes, addresses, nullptr, 0, values};
  order_by_number(warp.active_mask, lanes, access);
  warp.observer->on_local_access(warp, i, access);
  warp.follows_values = warp.observer->follows_values(warp);
}

void notify_shuffle(WarpContext& warp, const Instruction& i, const ShuffleSources& sources) {
  if (!warp.observer || (!sources.unspecified && !warp.follows_values)) return;
  warp.observer->on_shuffle(warp, i, sources);
  warp.follows_values = warp.observer->follows_values(warp);
}

uint32_t unspecified_value(const WarpContext& warp, uint32_t lane, uint32_t own_value) {
  return warp.schedule->unspecified_value(own_value, global_thread_index(warp, lane));
}

uint64_t global_thread_index(const WarpContext& warp, uint32_t lane) {
  return uint64_t(warp.block) * warp.threads + warp.warp * kWarpSize + lane;
}

}  // namespace vgpu
