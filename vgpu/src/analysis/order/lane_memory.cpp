// Keeps a state for each byte of the local variables of a warp's calls.
#include "lane_memory.h"

#include <algorithm>

namespace vgpu {

void LaneMemory::add(const PerLaneMemory& memory) {
  frames_.push_back({memory.base, std::vector<ByteState>(size_t(kWarpSize) * memory.bytes_per_lane)});
}

void LaneMemory::begin_call(const WarpContext& warp) {
  if (!warp.local_bytes) return;
  const uint8_t *begin = warp.local, *end = begin + size_t(kWarpSize) * warp.local_bytes;
  // Memory of calls that have returned is used again.
  const auto overlaps = [=](const Frame& frame) { return frame.begin < end && begin < frame.begin + frame.states.size(); };
  frames_.erase(std::remove_if(frames_.begin(), frames_.end(), overlaps), frames_.end());
  add({warp.local, warp.local_bytes, true});
}

ByteState* LaneMemory::find_known(const uint8_t* address) {
  for (Frame& frame : frames_)
    if (address >= frame.begin && address < frame.begin + frame.states.size())
      return &frame.states[static_cast<size_t>(address - frame.begin)];
  return nullptr;
}

ByteState* LaneMemory::find(const WarpContext& warp, const uint8_t* address) {
  if (ByteState* states = find_known(address)) return states;
  for (const PerLaneMemory& memory : warp.per_lane_memory) {
    const bool contains = address >= memory.base && address < memory.base + size_t(kWarpSize) * memory.bytes_per_lane;
    if (memory.is_local && contains) return add(memory), find_known(address);
  }
  return nullptr;
}

}  // namespace vgpu
