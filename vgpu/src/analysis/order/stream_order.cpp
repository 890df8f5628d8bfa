// Vector clocks of streams, events and the host.
#include "stream_order.h"

#include <algorithm>

namespace vgpu {

using Guard = std::lock_guard<std::mutex>;

void StreamOrder::join(Clock& clock, const Clock& other) {
  if (&clock == &other) return;
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t k = 0; k < other.size(); k++) clock[k] = std::max(clock[k], other[k]);
}

StreamOrder::Clock& StreamOrder::arrive(StreamNumber stream, bool blocking) {
  blocking_[stream] = blocking;
  Clock& stream_clock = clock(stream);
  join(stream_clock, host_);
  if (stream == kLegacy) {
    for (auto& [number, clock] : streams_)
      if (blocking_[number]) join(stream_clock, clock);
  } else if (blocking) {
    join(stream_clock, clock(kLegacy));
  }
  return stream_clock;
}

StreamOrder::Operation StreamOrder::add(StreamNumber stream, bool blocking) {
  Guard guard(lock_);
  Clock& stream_clock = arrive(stream, blocking);
  if (stream_clock.size() <= stream) stream_clock.resize(stream + 1);
  operations_.push_back({stream, ++stream_clock[stream]});
  const Operation operation = static_cast<Operation>(operations_.size());
  pending_[operation] = stream_clock;
  return operation;
}

void StreamOrder::set_current(Operation operation) {
  Guard guard(lock_);
  auto entry = pending_.find(operation);
  if (entry == pending_.end()) return;
  current_ = std::move(entry->second), current_operation_ = operation;
  pending_.erase(entry);
}

bool StreamOrder::is_before(Operation operation, const Clock& now) const {
  if (operation & kUnited) {
    const Members& united = united_[operation & ~kUnited];
    return std::all_of(united.begin(), united.end(), [&](Operation member) { return is_before(member, now); });
  }
  const Point& point = operations_[operation - 1];
  return point.stream < now.size() && now[point.stream] >= point.count;
}

StreamOrder::Members StreamOrder::members(Operation operation) const {
  return operation & kUnited ? united_[operation & ~kUnited] : Members{operation};
}

bool StreamOrder::is_before_current(Operation operation) const {
  Guard guard(lock_);
  return is_before(operation, current_);
}

bool StreamOrder::are_all_before_current() const {
  Guard guard(lock_);
  for (const auto& [stream, clock] : streams_) {
    const uint32_t operations = stream < clock.size() ? clock[stream] : 0,
                   completed = stream < current_.size() ? current_[stream] : 0;
    if (operations > completed) return false;
  }
  return true;
}

// Operations before the current one are dropped from a set that contains the current one.
StreamOrder::Operation StreamOrder::unite(Operation first, Operation second) {
  if (first == second) return first;
  Guard guard(lock_);
  Members union_members = members(first);
  for (Operation member : members(second)) union_members.push_back(member);
  std::sort(union_members.begin(), union_members.end());
  union_members.erase(std::unique(union_members.begin(), union_members.end()), union_members.end());
  if (std::binary_search(union_members.begin(), union_members.end(), current_operation_))
    union_members.erase(std::remove_if(union_members.begin(), union_members.end(),
                                       [this](Operation candidate) {
                                         return candidate != current_operation_ && is_before(candidate, current_);
                                       }),
                        union_members.end());
  if (union_members.size() == 1) return union_members[0];
  auto [entry, is_new] = united_index_.try_emplace(union_members);
  if (is_new) {
    united_.push_back(union_members);
    entry->second = kUnited | static_cast<Operation>(united_.size() - 1);
  }
  return entry->second;
}

void StreamOrder::record(uint64_t event, StreamNumber stream, bool blocking) {
  Guard guard(lock_);
  events_[event] = arrive(stream, blocking);
}

void StreamOrder::wait(StreamNumber stream, uint64_t event) {
  Guard guard(lock_);
  auto entry = events_.find(event);
  if (entry != events_.end()) join(clock(stream), entry->second);
}

void StreamOrder::on_host_wait(StreamNumber stream, bool blocking) {
  Guard guard(lock_);
  join(host_, arrive(stream, blocking));
}

void StreamOrder::on_host_wait_event(uint64_t event) {
  Guard guard(lock_);
  auto entry = events_.find(event);
  if (entry != events_.end()) join(host_, entry->second);
}

bool StreamOrder::is_known_to_host(const Clock& clock) const {
  for (size_t k = 0; k < clock.size(); k++)
    if (clock[k] > (k < host_.size() ? host_[k] : 0)) return false;
  return true;
}

bool StreamOrder::is_before_host(StreamNumber stream, bool blocking) {
  Guard guard(lock_);
  return is_known_to_host(arrive(stream, blocking));
}

bool StreamOrder::is_before_host(uint64_t event) const {
  Guard guard(lock_);
  auto entry = events_.find(event);
  return entry == events_.end() || is_known_to_host(entry->second);
}

void StreamOrder::on_host_wait_all() {
  Guard guard(lock_);
  for (auto& [stream, clock] : streams_) join(host_, clock);
}

}  // namespace vgpu
