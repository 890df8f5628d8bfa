// Keeps the accesses to the locations of a small launch.
#include "location_history.h"

namespace vgpu {

void LocationHistories::begin_launch(bool is_small) { histories_.clear(), are_kept_ = is_small, accesses_ = 0; }

void LocationHistories::add(LocationNumber location, const LocationState& state, RecordedAccess access, const Accessor& now,
                            bool is_loop) {
  are_kept_ = ++accesses_ <= kMaxAccessesOfLaunch;
  if (!are_kept_) return;
  const auto [entry, is_new] = histories_.try_emplace(location);
  History& history = entry->second;
  if (is_new) history.initial = history.current = state;
  if (!history.is_complete) return;
  if (is_loop && access.value_in(history.current) != access.expected) return;
  history.is_complete = history.accesses.size() < kMaxAccesses && can_perform(access);
  if (!history.is_complete) return;
  for (size_t k = 0; k < history.accesses.size(); k++)
    if (order_.is_before(history.accesses[k].accessor, now)) access.predecessors |= 1u << k;
  access.accessor = HappensBefore::single(now);
  history.current = access.perform(history.current);
  history.accesses.push_back(access);
}

bool LocationHistories::keep_conflict(LocationNumber location, const char* reason, uint32_t position, uint32_t other_position) {
  const auto entry = histories_.find(location);
  if (entry == histories_.end() || !entry->second.is_complete) return false;
  return entry->second.conflicts[{reason, position, other_position}]++, true;
}

void LocationHistories::end_launch(Findings& findings) {
  for (const auto& [location, history] : histories_) {
    if (history.conflicts.empty()) continue;
    if (are_kept_ && history.is_complete && all_orders_agree(history.initial, history.accesses)) {
      findings.add(Rule::Exploration);
      continue;
    }
    for (const auto& [conflict, times] : history.conflicts)
      findings.add(std::get<0>(conflict), std::get<1>(conflict), std::get<2>(conflict), times);
  }
  histories_.clear(), are_kept_ = false;
}

}  // namespace vgpu
