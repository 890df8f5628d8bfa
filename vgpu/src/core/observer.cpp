#include "observer.h"

#include "warp_context.h"

namespace vgpu {

bool is_shared(const Lanes& w, const uint8_t* at) { return at >= w.shared && at < w.shared + w.shared_bytes; }

Location locate(const Lanes& w, const uint8_t* at) {
  if (is_shared(w, at)) return {Location::Shared, w.block, static_cast<uint64_t>(at - w.shared)};
  uint64_t address = reinterpret_cast<uint64_t>(at);
  Extent found = w.memory->find(address);
  return found.end ? Location{Location::Global, found.number, address - found.origin} : Location();
}

void touched(const Lanes& w, const Instruction& i, Touch touch) {
  uint8_t lanes[kLanes];
  if (!touch.lanes) {
    for (uint32_t left = w.mask; left; left &= left - 1) lanes[touch.count++] = static_cast<uint8_t>(__builtin_ctz(left));
    touch.lanes = lanes;
  }
  w.observer->touch(w, i, touch);
}

uint64_t thread_of(const Lanes& w, uint32_t lane) { return uint64_t(w.block) * w.threads + w.warp * kLanes + lane; }

}  // namespace vgpu
