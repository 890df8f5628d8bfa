#include "observer.h"

#include "warp_context.h"

namespace vgpu {

bool is_shared(const WarpContext& w, const uint8_t* at) { return at >= w.shared && at < w.shared + w.shared_bytes; }

Location location_of(const WarpContext& w, const uint8_t* at) {
  if (is_shared(w, at)) return {Location::Shared, w.block, static_cast<uint64_t>(at - w.shared)};
  uint64_t address = reinterpret_cast<uint64_t>(at);
  Allocation found = w.memory->find(address);
  return found.end ? Location{Location::Global, found.number, address - found.origin} : Location();
}

void notify_access(const WarpContext& w, const Instruction& i, MemoryAccess access) {
  uint8_t lanes[kWarpSize];
  if (!access.lane_order) {
    for (uint32_t left = w.active_mask; left; left &= left - 1)
      lanes[access.count++] = static_cast<uint8_t>(__builtin_ctz(left));
    access.lane_order = lanes;
  }
  w.observer->on_access(w, i, access);
}

uint64_t global_thread_index(const WarpContext& w, uint32_t lane) {
  return uint64_t(w.block) * w.threads + w.warp * kWarpSize + lane;
}

}  // namespace vgpu
