#include "holding.h"

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
      waiting_.push_back({at[lane], w.block, w.warp, lane});
    } else {
      order[now++] = static_cast<uint8_t>(lane);
      stopped = done(at[lane]);
    }
  }
  return now;
}

// One was done at this address, for which others waited; is somebody next?
bool Holding::done(const uint8_t* at) {
  std::vector<One> still;
  for (const One& one : waiting_) {
    if (one.at == at) next_.push_back(one);
    else still.push_back(one);
  }
  waiting_.swap(still);
  return !next_.empty();
}

Holding::One Holding::take() {
  One one = next_.front();
  next_.pop_front();
  return one;
}

void Holding::release() {
  next_.insert(next_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
}

}  // namespace vgpu
