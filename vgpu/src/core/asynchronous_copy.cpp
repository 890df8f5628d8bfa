// Executes an asynchronous copy at once, as reads of global and a write to shared memory.
#include "asynchronous_copy.h"

#include <cstring>

#include "instruction_set.h"

namespace vgpu {
namespace {

// Performs the deferred atomics at these addresses (deferred_atomics.h), and notifies the observer.
void prepare_access(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes,
                    uint8_t* const addresses[kWarpSize]) {
  if (warp.deferred) warp.deferred->settle_at(warp, addresses, bytes);
  if (!warp.observer) return;
  MemoryAccess access = {kind, kWeak, OrderSensitivity::Nothing, bytes, addresses, nullptr, 0};
  access.contiguous = is_contiguous(warp.active_mask, addresses, bytes);
  notify_access(warp, i, access);
}

// Reads `bytes` at source + offset for some lanes, into values + offset.
bool read_lanes(WarpContext& warp, const Instruction& i, uint32_t lanes, uint32_t bytes, const uint64_t source[kWarpSize],
                uint32_t offset, uint8_t (*values)[16]) {
  if (!lanes) return true;
  const uint32_t active = warp.active_mask;
  alignas(64) uint64_t address[kWarpSize];
  uint8_t* addresses[kWarpSize];
  for (uint32_t l = 0; l < kWarpSize; l++) address[l] = source[l] + offset;
  warp.active_mask = lanes;
  const bool is_ok = check_addresses(warp, address, bytes, addresses);
  if (is_ok) {
    prepare_access(warp, i, AccessKind::Read, bytes, addresses);
    for_each_lane(lanes, [&](uint32_t l) { std::memcpy(values[l] + offset, addresses[l], bytes); });
  }
  warp.active_mask = active;
  return is_ok;
}

}  // namespace

void copy_asynchronously(WarpContext& warp, const Instruction& i, uint32_t bytes, const uint64_t source[kWarpSize],
                         const uint32_t source_bytes[kWarpSize], uint8_t* const destinations[kWarpSize]) {
  uint8_t values[kWarpSize][16] = {};
  const uint32_t whole = warp.active_mask & lanes_where([=](uint32_t l) { return source_bytes[l] == bytes; });
  const uint32_t partial = warp.active_mask & ~whole;
  for_each_lane(partial, [&](uint32_t l) {
    if (source_bytes[l] && source[l] % bytes) warp.set_fault(KernelFault::Misaligned, source[l]);
  });
  if (warp.fault != KernelFault::None || !read_lanes(warp, i, whole, bytes, source, 0, values)) return;
  for (uint32_t k = 0; k < bytes && partial; k++) {
    const uint32_t lanes = partial & lanes_where([=](uint32_t l) { return k < source_bytes[l]; });
    if (!read_lanes(warp, i, lanes, 1, source, k, values)) return;
  }
  prepare_access(warp, i, AccessKind::Write, bytes, destinations);
  ++*warp.visible_writes;
  for_each_lane(warp.active_mask, [&](uint32_t l) { std::memcpy(destinations[l], values[l], bytes); });
}

}  // namespace vgpu
