// Which operations of streams come before which: vector clocks of streams, events and host waits.
#include "stream_order.h"

#include <algorithm>

namespace vgpu {

using Hold = std::lock_guard<std::mutex>;

void StreamOrder::join(Clock& to, const Clock& from) {
  if (&to == &from) return;
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t k = 0; k < from.size(); k++) to[k] = std::max(to[k], from[k]);
}

StreamOrder::Clock& StreamOrder::arrive(StreamNumber stream, bool blocking) {
  blocking_[stream] = blocking;
  Clock& own = clock(stream);
  join(own, host_);
  if (stream == kLegacy) {
    for (auto& [other, clock] : streams_)
      if (blocking_[other]) join(own, clock);
  } else if (blocking) {
    join(own, clock(kLegacy));
  }
  return own;
}

StreamOrder::Operation StreamOrder::add(StreamNumber stream, bool blocking) {
  Hold hold(lock_);
  Clock& own = arrive(stream, blocking);
  if (own.size() <= stream) own.resize(stream + 1);
  operations_.push_back({stream, ++own[stream]});
  const Operation made = static_cast<Operation>(operations_.size());
  pending_[made] = own;
  return made;
}

void StreamOrder::set_current(Operation operation) {
  Hold hold(lock_);
  auto found = pending_.find(operation);
  if (found == pending_.end()) return;
  current_ = std::move(found->second), current_operation_ = operation;
  pending_.erase(found);
}

bool StreamOrder::is_before(Operation operation, const Clock& now) const {
  if (operation & kUnited) {
    const Members& all = united_[operation & ~kUnited];
    return std::all_of(all.begin(), all.end(), [&](Operation one) { return is_before(one, now); });
  }
  const Point& at = operations_[operation - 1];
  return at.stream < now.size() && now[at.stream] >= at.count;
}

StreamOrder::Members StreamOrder::members(Operation operation) const {
  return operation & kUnited ? united_[operation & ~kUnited] : Members{operation};
}

bool StreamOrder::is_before_current(Operation operation) const {
  Hold hold(lock_);
  return is_before(operation, current_);
}

bool StreamOrder::are_all_before_current() const {
  Hold hold(lock_);
  for (const auto& [stream, clock] : streams_) {
    const uint32_t own = stream < clock.size() ? clock[stream] : 0, now = stream < current_.size() ? current_[stream] : 0;
    if (own > now) return false;
  }
  return true;
}

// Of what is before the current operation nothing need be kept beside it.
StreamOrder::Operation StreamOrder::unite(Operation one, Operation other) {
  if (one == other) return one;
  Hold hold(lock_);
  Members all = members(one);
  for (Operation more : members(other)) all.push_back(more);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (std::binary_search(all.begin(), all.end(), current_operation_))
    all.erase(std::remove_if(all.begin(), all.end(),
                             [this](Operation old) { return old != current_operation_ && is_before(old, current_); }),
              all.end());
  if (all.size() == 1) return all[0];
  auto [found, fresh] = united_index_.try_emplace(all);
  if (fresh) {
    united_.push_back(all);
    found->second = kUnited | static_cast<Operation>(united_.size() - 1);
  }
  return found->second;
}

void StreamOrder::record(uint64_t event, StreamNumber stream, bool blocking) {
  Hold hold(lock_);
  events_[event] = arrive(stream, blocking);
}

void StreamOrder::wait(StreamNumber stream, uint64_t event) {
  Hold hold(lock_);
  auto found = events_.find(event);
  if (found != events_.end()) join(clock(stream), found->second);
}

void StreamOrder::on_host_wait(StreamNumber stream, bool blocking) {
  Hold hold(lock_);
  join(host_, arrive(stream, blocking));
}

void StreamOrder::on_host_wait_event(uint64_t event) {
  Hold hold(lock_);
  auto found = events_.find(event);
  if (found != events_.end()) join(host_, found->second);
}

void StreamOrder::on_host_wait_all() {
  Hold hold(lock_);
  for (auto& [stream, clock] : streams_) join(host_, clock);
}

}  // namespace vgpu
