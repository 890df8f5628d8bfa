#include "holding.h"

#include <algorithm>

#include "lanes.h"
#include "schedule.h"

namespace vgpu {

uint32_t Holding::come(Lanes& w, uint8_t* const* at, uint8_t* order, uint32_t count) {
  uint32_t now = 0;
  bool stopped = false;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t lane = order[k];
    if (stopped) {
      w.later |= 1u << lane;
    } else if (!w.released && schedule_.waits()) {
      w.held |= 1u << lane;
      waiting_[at[lane]].push_back({came_++, w.block, w.warp, lane});
    } else {
      order[now++] = static_cast<uint8_t>(lane);
      stopped = done(at[lane]);
    }
  }
  return now;
}

// One was done at this address, for which others waited; is somebody next?
bool Holding::done(const uint8_t* at) {
  auto found = waiting_.find(at);
  if (found != waiting_.end()) {
    next_.insert(next_.end(), found->second.begin(), found->second.end());
    waiting_.erase(found);
  }
  return !next_.empty();
}

Holding::One Holding::take() {
  One one = next_.front();
  next_.pop_front();
  return one;
}

void Holding::release() {
  for (const auto& [at, those] : waiting_) next_.insert(next_.end(), those.begin(), those.end());
  std::sort(next_.begin(), next_.end(), [](const One& a, const One& b) { return a.came < b.came; });
  waiting_.clear();
}

}  // namespace vgpu
