// Does an access come after a set of others in every schedule?
#include "happens_before.h"

#include <algorithm>

namespace vgpu {

void HappensBefore::begin_operation() { std::fill(answers_, answers_ + kAnswers, Answer()); }

bool HappensBefore::operation_is_before(StreamOrder::Operation one) {
  Answer& answer = answers_[(one ^ one >> 27) % kAnswers];
  if (answer.operation != one) answer = {one, order_.is_before_current(one)};
  return answer.before;
}

bool HappensBefore::is_before(const Accessors& all, const Accessor& now) {
  if (all.extent == Accessors::None) return true;
  if (all.operation != now.operation) return operation_is_before(all.operation);
  if (all.extent == Accessors::Grid || all.block != now.block) return false;
  if (all.epoch < now.epoch) return true;
  if (all.extent == Accessors::Block || all.warp != now.warp) return false;
  if (all.clock < now.everyone) return true;
  for (uint32_t left = all.lanes & ~(1u << now.lane); left; left &= left - 1)
    if (!now.synchronized || now.synchronized[__builtin_ctz(left)] <= all.clock) return false;
  return true;
}

Accessors HappensBefore::unite(const Accessors& one, const Accessors& other) {
  if (one.extent == Accessors::None) return other;
  if (other.extent == Accessors::None) return one;
  Accessors made = other;
  const bool together =
      one.operation == other.operation && one.block == other.block && one.epoch == other.epoch && one.warp == other.warp;
  if (together) made.lanes |= one.lanes, made.clock = std::max(one.clock, other.clock);
  if (one.operation != other.operation) {
    made.operation = order_.unite(one.operation, other.operation);
    made.extent = Accessors::Grid;
  } else if (one.extent == Accessors::Grid || other.extent == Accessors::Grid || one.block != other.block) {
    made.extent = Accessors::Grid;
  } else if (one.epoch != other.epoch) {
    return one.epoch > other.epoch ? one : other;
  } else if (one.warp != other.warp || one.extent == Accessors::Block) {
    made.extent = Accessors::Block;
  }
  return made;
}

}  // namespace vgpu
