// Orders accesses by the clocks of their threads, and summarizes sets of accessors.
#include "happens_before.h"

#include <algorithm>

namespace vgpu {

void HappensBefore::begin_operation() { std::fill(cache_, cache_ + kCacheSize, CachedOrder()); }

bool HappensBefore::operation_is_before(StreamOrder::Operation operation) {
  CachedOrder& entry = cache_[(operation ^ operation >> 27) % kCacheSize];
  if (entry.operation != operation) entry = {operation, order_.is_before_current(operation)};
  return entry.is_before;
}

bool HappensBefore::is_before(const AccessorSummary& accessors, const Accessor& now) {
  if (accessors.extent == AccessorSummary::None) return true;
  if (accessors.operation != now.operation) return operation_is_before(accessors.operation);
  if (accessors.extent == AccessorSummary::Grid || accessors.block != now.block) return false;
  if (accessors.epoch < now.epoch) return true;
  if (accessors.extent == AccessorSummary::Block || accessors.warp != now.warp) return false;
  if (accessors.clock < now.lockstep_clock) return true;
  for (uint32_t remaining = accessors.lanes & ~(1u << now.lane); remaining; remaining &= remaining - 1)
    if (!now.synchronized || now.synchronized[__builtin_ctz(remaining)] <= accessors.clock) return false;
  return true;
}

AccessorSummary HappensBefore::unite(const AccessorSummary& first, const AccessorSummary& second) {
  if (first.extent == AccessorSummary::None) return second;
  if (second.extent == AccessorSummary::None) return first;
  AccessorSummary united = second;
  const bool is_same_warp = first.operation == second.operation && first.block == second.block && first.epoch == second.epoch &&
                            first.warp == second.warp;
  if (is_same_warp) united.lanes |= first.lanes, united.clock = std::max(first.clock, second.clock);
  if (first.operation != second.operation) {
    united.operation = order_.unite(first.operation, second.operation);
    united.extent = AccessorSummary::Grid;
  } else if (first.extent == AccessorSummary::Grid || second.extent == AccessorSummary::Grid || first.block != second.block) {
    united.extent = AccessorSummary::Grid;
  } else if (first.epoch != second.epoch) {
    return first.epoch > second.epoch ? first : second;
  } else if (first.warp != second.warp || first.extent == AccessorSummary::Block) {
    united.extent = AccessorSummary::Block;
  }
  return united;
}

}  // namespace vgpu
