// Defers atomics so that a later one at the same address executes first (schedule atomics:SEED).
#include "deferred_atomics.h"

#include <algorithm>

#include "instruction_set.h"
#include "schedule.h"

namespace vgpu {
namespace {

constexpr uint32_t kMaxLate = 1 << 14;

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(__builtin_ctz(mask)); }
uint32_t lanes_below(uint32_t lane) { return (1u << lane) - 1; }

// Calls f(lane) for each lane of the mask, one after the other.
template <class F> void for_each_lane_in_order(uint32_t mask, F f) {
  for (uint32_t remaining = mask; remaining; remaining &= remaining - 1) f(first_lane(remaining));
}

uint64_t value_of(const uint8_t* values, uint32_t lane, uint32_t bytes) {
  if (bytes == 2) return reinterpret_cast<const uint16_t*>(values)[lane];
  if (bytes == 4) return reinterpret_cast<const uint32_t*>(values)[lane];
  return reinterpret_cast<const uint64_t*>(values)[lane];
}

}  // namespace

uint32_t DeferredAtomics::AddressLanes::at(uint8_t* const* addresses, const uint8_t* address) const {
  uint32_t result = 0;
  if (!(filter & bit(address))) return result;
  for (uint32_t remaining = lanes; remaining; remaining &= remaining - 1)
    if (addresses[first_lane(remaining)] == address) result |= remaining & -remaining;
  return result;
}

// Returns whether the lanes have different addresses; false if it is not certain.
bool DeferredAtomics::have_distinct_addresses(uint32_t lanes, uint8_t* const* addresses) {
  uint64_t filter = 0;
  for_each_lane_in_order(lanes, [&](uint32_t lane) { filter |= AddressLanes::bit(addresses[lane]); });
  return __builtin_popcountll(filter) == __builtin_popcount(lanes);
}

// Returns the lanes at whose addresses atomics may have been deferred.  Half of the lanes may have some, in no pattern: to handle
// them apart from the others is faster than a branch for each lane, which the processor mispredicts.
uint32_t DeferredAtomics::overtaking_lanes(const WarpContext& warp, uint8_t* const* addresses, uint32_t lanes) {
  uint32_t result = 0;
  for_each_lane_in_order(lanes, [&](uint32_t lane) {
    const uint8_t* const address = addresses[lane];
    const uint32_t has_waiting = waiting_at(warp, address).may_wait_at(address), has_late = late_.may_wait_at(address);
    result |= (has_waiting | has_late) << lane;
  });
  return result;
}

uint32_t DeferredAtomics::select_arriving(WarpContext& warp, const Instruction& i, uint8_t* const* addresses,
                                          uint8_t order[kWarpSize]) {
  uint32_t executing = 0;
  const auto execute = [&](uint32_t lane) { order[executing++] = static_cast<uint8_t>(lane); };
  if (warp.deferral_done) {  // they were deferred before, and execute now
    for_each_lane_in_order(warp.active_mask, [&](uint32_t lane) { execute(lane), note_passed(addresses[lane]); });
    return executing;
  }
  const uint32_t chosen = schedule_.choose_deferred(warp.active_mask, i.is_frequent);
  if (have_distinct_addresses(warp.active_mask, addresses)) {
    for_each_lane_in_order(warp.active_mask & ~chosen, execute);
    for_each_lane_in_order(overtaking_lanes(warp, addresses, warp.active_mask & ~chosen),
                           [&](uint32_t lane) { note_passed(addresses[lane]), release_waiting(warp, addresses[lane]); });
    return suspend(warp, addresses, chosen, 0), executing;
  }
  // blocking: lanes that overtake atomics of other instructions, which execute before any later lane at the same address.
  AddressLanes deferred, blocking;
  uint32_t released = 0;
  for_each_lane_in_order(chosen, [&](uint32_t lane) { deferred.add_if(true, lane, addresses[lane]); });
  for_each_lane_in_order(warp.active_mask & ~chosen, [&](uint32_t lane) {
    uint8_t* const address = addresses[lane];
    if (blocking.at(addresses, address)) {
      warp.blocked_mask |= 1u << lane;
      return;
    }
    execute(lane);
    const bool has_late = note_passed(address), has_waiting = release_waiting(warp, address),
               is_blocking = has_late || has_waiting;
    blocking.add_if(is_blocking, lane, address);
    const uint32_t overtaken = deferred.at(addresses, address) & lanes_below(lane);
    deferred.lanes &= ~overtaken;
    if (is_blocking) released |= overtaken;
    else for_each_lane_in_order(overtaken, execute);
  });
  for_each_lane_in_order(deferred.lanes, [&](uint32_t lane) {
    if (blocking.at(addresses, addresses[lane]) & lanes_below(lane)) warp.blocked_mask |= 1u << lane;
  });
  suspend(warp, addresses, deferred.lanes & ~warp.blocked_mask, released);
  return executing;
}

// Suspends lanes until their atomics execute.  waiting: those that wait for others; released: those that need not.
void DeferredAtomics::suspend(WarpContext& warp, uint8_t* const* addresses, uint32_t waiting, uint32_t released) {
  if (!(waiting | released)) return;
  warp.deferred_mask |= waiting | released;
  if (free_suspensions_.empty()) {
    free_suspensions_.push_back(static_cast<uint32_t>(suspensions_.size()));
    suspensions_.emplace_back();
  }
  const uint32_t suspension = free_suspensions_.back();
  free_suspensions_.pop_back();
  suspensions_[suspension] = {arrivals_++, warp.resident_block, warp.warp, waiting, 0};
  for_each_lane_in_order(waiting, [&](uint32_t lane) {
    AddressTable<Waiting>& table = waiting_at(warp, addresses[lane]);
    table[table.add(addresses[lane])] = {suspension, lane};
  });
  if (released) release(suspension, released);
}

// Lets these lanes of a suspension execute.
void DeferredAtomics::release(uint32_t suspension, uint32_t lanes) {
  Suspension& s = suspensions_[suspension];
  if (!s.released) enqueue(suspension);
  s.waiting &= ~lanes, s.released |= lanes;
}

// Adds a suspension to those with released lanes, in their order.
void DeferredAtomics::enqueue(uint32_t suspension) {
  const auto is_later = [&](uint32_t other) { return suspensions_[other].arrival > suspensions_[suspension].arrival; };
  released_.insert(std::partition_point(released_.begin(), released_.end(), is_later), suspension);
}

// Lets atomics execute that waited for one at this address.  Returns whether there is any.
bool DeferredAtomics::release_waiting(const WarpContext& warp, uint8_t* address) {
  bool has_waiting = false;
  waiting_at(warp, address).take_at(address, [&](const Waiting& waiting) {
    release(waiting.suspension, 1u << waiting.lane);
    has_waiting = true;
  });
  return has_waiting;
}

// Returns whether there are late atomics at this address, which must now be performed.
bool DeferredAtomics::note_passed(uint8_t* address) {
  if (!late_.waits_at(address)) return false;
  passed_.push_back(address);
  return true;
}

void DeferredAtomics::arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* b,
                                      const uint8_t* c, uint32_t bytes, Perform perform) {
  const uint32_t chosen = schedule_.choose_deferred(warp.active_mask, false);
  uint64_t filters[2] = {};
  for_each_lane_in_order(warp.active_mask,
                         [&](uint32_t lane) { filters[chosen >> lane & 1] |= AddressLanes::bit(addresses[lane]); });
  const auto arrive_or_defer_lane = [&](uint32_t lane) {
    const uint64_t operand_b = value_of(b, lane, bytes), operand_c = value_of(c, lane, bytes);
    if (chosen >> lane & 1) {
      Late& late = defer(warp, lane, addresses[lane]);
      late.i = &i, late.perform = perform, late.b = operand_b, late.c = operand_c;
    } else {
      arrive(warp, i, addresses[lane], lane, operand_b, operand_c, perform);
    }
  };
  if (filters[0] & filters[1]) return for_each_lane_in_order(warp.active_mask, arrive_or_defer_lane);
  // No deferred lane has the address of another one.
  const uint32_t overtaking = overtaking_lanes(warp, addresses, warp.active_mask & ~chosen);
  for_each_lane_in_order(warp.active_mask & ~chosen & ~overtaking, [&](uint32_t lane) {
    perform(warp, i, addresses[lane], lane, value_of(b, lane, bytes), value_of(c, lane, bytes));
  });
  for_each_lane_in_order(overtaking, arrive_or_defer_lane);
  for_each_lane_in_order(chosen, arrive_or_defer_lane);
}

// Performs an atomic, and the late ones that have waited for one at its address.
void DeferredAtomics::arrive(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane, uint64_t b, uint64_t c,
                             Perform perform) {
  late_.remove_at(address, slots_);
  const auto perform_passed = [&](bool own) {
    for (uint32_t slot : slots_)
      if ((late_[slot].lane == lane && late_[slot].warp == warp.warp && late_[slot].block == warp.block) == own)
        perform_late(slot);
  };
  perform_passed(true);  // a lane's own atomics stay in order
  perform(warp, i, address, lane, b, c);
  perform_passed(false);
  slots_.clear();
  release_waiting(warp, address);
}

// Adds a late atomic; the caller sets the fields i, perform, b and c.
DeferredAtomics::Late& DeferredAtomics::defer(WarpContext& warp, uint32_t lane, uint8_t* address) {
  if (!proxy_.memory) {
    proxy_.memory = warp.memory, proxy_.schedule = warp.schedule, proxy_.observer = warp.observer,
    proxy_.visible_writes = warp.visible_writes;
    proxy_.shared_bytes = warp.shared_bytes, proxy_.threads = warp.threads;
  }
  if (late_.size() == kMaxLate) settle_all();
  std::vector<DeferralList::Entry>& deferrals = warp.deferrals->all;
  if (deferrals.size() >= kWarpSize && deferrals.size() == deferrals.capacity())
    deferrals.erase(std::remove_if(deferrals.begin(), deferrals.end(),
                                   [this](const DeferralList::Entry& entry) { return !is_pending(entry); }),
                    deferrals.end());
  const int64_t begin = reinterpret_cast<int64_t>(address);
  if (!late_.size()) late_begin_ = late_end_ = begin;
  late_begin_ = std::min(late_begin_, begin), late_end_ = std::max(late_end_, begin + int64_t(sizeof(uint64_t)));
  const uint32_t slot = late_.add(address);
  deferrals.push_back({slot, late_.generation(slot), lane});
  Late& late = late_[slot];
  late.arrival = arrivals_++, late.shared = warp.shared, late.block = warp.block, late.warp = warp.warp, late.lane = lane;
  return late;
}

// Performs a late atomic that was removed from the table.
void DeferredAtomics::perform_late(uint32_t slot) {
  const Late& late = late_[slot];
  proxy_.block = late.block, proxy_.warp = late.warp, proxy_.shared = late.shared, proxy_.active_mask = 1u << late.lane;
  late.perform(proxy_, *late.i, late_.address(slot), late.lane, late.b, late.c);
  late_.free(slot);
}

// Puts late atomics that were removed from the table in order of arrival.
void DeferredAtomics::sort_removed() {
  std::sort(slots_.begin(), slots_.end(), [this](uint32_t a, uint32_t b) { return late_[a].arrival < late_[b].arrival; });
}

void DeferredAtomics::perform_removed() {
  for (uint32_t slot : slots_) perform_late(slot);
  slots_.clear();
}

void DeferredAtomics::settle_address(uint8_t* address) {
  late_.remove_at(address, slots_);
  perform_removed();
}

void DeferredAtomics::settle(DeferralList& own, uint32_t lanes) {
  size_t kept = 0;
  for (const DeferralList::Entry& entry : own.all) {
    if (!is_pending(entry)) continue;
    if (lanes >> entry.lane & 1) late_.remove(entry.slot), perform_late(entry.slot);
    else own.all[kept++] = entry;
  }
  own.all.resize(kept);
}

void DeferredAtomics::settle_at(const WarpContext& warp, uint8_t* const* addresses, uint32_t bytes) {
  if (!late_.size()) return;
  int64_t low = INT64_MAX, high = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const int64_t address = reinterpret_cast<int64_t>(addresses[l]);
    low = std::min(low, address), high = std::max(high, address);
  });
  if (low >= late_end_ || high + bytes <= late_begin_) return;
  for_each_lane(warp.active_mask, [&](uint32_t l) { late_.remove_overlapping(addresses[l], bytes, slots_); });
  sort_removed();
  perform_removed();
}

void DeferredAtomics::settle_at_passed() {
  for (uint8_t* address : passed_) settle_address(address);
  passed_.clear();
}

void DeferredAtomics::settle_all() {
  if (!late_.size()) return;
  late_.remove_if([](const Late&) { return true; }, slots_);
  sort_removed();
  perform_removed();
}

void DeferredAtomics::settle_shared(DeferralList& deferrals, const WarpContext& warp) {
  for (const DeferralList::Entry& entry : deferrals.all) {
    if (!is_pending(entry)) continue;
    uint8_t* const address = late_.address(entry.slot);
    if (is_shared(warp, address)) settle_address(address);
  }
  deferrals.all.clear();
}

// The lanes execute in ascending order, which is that of their arrival at each address.  After each of them, late atomics at its
// address are performed.
uint32_t DeferredAtomics::pop_next() {
  const uint32_t suspension = released_.back();
  Suspension& s = suspensions_[suspension];
  const uint32_t lanes = late_.size() ? s.released & -s.released : s.released;
  s.released &= ~lanes;
  if (!s.released) released_.pop_back();
  if (!(s.waiting | s.released)) free_suspensions_.push_back(suspension);
  return lanes;
}

// Lets atomics execute that were removed from a table.
void DeferredAtomics::release_removed(AddressTable<Waiting>& table) {
  for (uint32_t slot : slots_) release(table[slot].suspension, 1u << table[slot].lane), table.free(slot);
  slots_.clear();
}

// The same for waiting atomics of a table for which the predicate is true.
template <class P> void DeferredAtomics::release_if(AddressTable<Waiting>& table, P predicate) {
  table.remove_if(predicate, slots_);
  release_removed(table);
}

void DeferredAtomics::release_all() {
  settle_all();
  const auto all = [](const Waiting&) { return true; };
  release_if(waiting_shared_, all);
  release_if(waiting_, all);
}

void DeferredAtomics::release_shared(const Block& block) {
  if (!waiting_shared_.size()) return;
  release_if(waiting_shared_, [&](const Waiting& waiting) { return suspensions_[waiting.suspension].block == &block; });
}

}  // namespace vgpu
