#include "warp.h"

#include <algorithm>

namespace vgpu {

uint8_t* Frame::aligned() { return aligned_in(registers, 64); }

uint8_t* Frame::local_variables() { return aligned_in(local, program->local_align); }

void Frame::prepare(const Program& p) {
  if (program != &p) {
    program = &p;
    charge.set(p.register_bytes + p.constants.size() +
               uint64_t(kLanes) * (p.local_bytes + p.scratch_bytes + p.parameter_bytes));
    registers.assign(p.register_bytes + p.constants.size() + 64, 0);
    std::copy(p.constants.begin(), p.constants.end(), aligned() + p.register_bytes);
    local.assign(size_t(p.local_bytes) * kLanes + p.local_align, 0);
    scratch.assign(size_t(p.scratch_bytes) * kLanes, 0);
  } else {
    std::fill_n(aligned(), p.register_bytes, 0);
    std::fill(local.begin(), local.end(), 0);
  }
  caller = nullptr, site = nullptr, depth = 0, holders = 0;
}

Frame* Warp::enter(const Program& program) {
  auto same = std::find_if(spare.begin(), spare.end(), [&](const auto& one) { return one->program == &program; });
  std::unique_ptr<Frame> frame;
  if (same != spare.end()) {
    frame = std::move(*same);
    spare.erase(same);
  } else {
    frame = std::make_unique<Frame>();
  }
  frame->prepare(program);
  frames.push_back(std::move(frame));
  return frames.back().get();
}

void Warp::leave(Frame* frame) {
  while (frame && --frame->holders == 0) {
    Frame* caller = frame->caller;
    auto at = std::find_if(frames.begin(), frames.end(), [&](const auto& one) { return one.get() == frame; });
    spare.push_back(std::move(*at));
    frames.erase(at);
    frame = caller;
  }
}

bool Warp::ready() const {
  return std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.state == State::Ready; });
}

}  // namespace vgpu
