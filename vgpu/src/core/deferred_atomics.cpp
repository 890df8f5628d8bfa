// Defers atomics so that a later one at the same address executes first (schedule atomics:SEED).
#include "deferred_atomics.h"

#include <algorithm>

#include "schedule.h"

namespace vgpu {
namespace {

constexpr uint32_t kMaxLate = 1 << 14;

uint64_t value_of(const uint8_t* values, uint32_t lane, uint32_t bytes) {
  if (bytes == 2) return reinterpret_cast<const uint16_t*>(values)[lane];
  if (bytes == 4) return reinterpret_cast<const uint32_t*>(values)[lane];
  return reinterpret_cast<const uint64_t*>(values)[lane];
}

}  // namespace

// Removes the lanes with this address, and passes them to f.
template <class F> void DeferredAtomics::AddressLanes::take_at(uint8_t* const* addresses, const uint8_t* address, F f) {
  if (!(filter & bit(address))) return;
  uint32_t kept = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (addresses[lanes[k]] == address) f(lanes[k]);
    else lanes[kept++] = lanes[k];
  }
  count = kept;
}

uint32_t DeferredAtomics::select_arriving(WarpContext& warp, uint8_t* const* addresses, uint8_t* order, uint32_t count) {
  if (warp.deferral_done) {  // they were deferred before, and execute now
    for (uint32_t k = 0; k < count; k++) note_passed(addresses[order[k]]);
    return count;
  }
  uint32_t executing = 0;
  // blocking: lanes that overtake atomics of other instructions, which execute before any later lane at the same address.
  AddressLanes deferred, blocking;
  for (uint32_t k = 0; k < count; k++) {
    const uint8_t lane = order[k];
    uint8_t* const address = addresses[lane];
    if (blocking.has(addresses, address)) {
      warp.blocked_mask |= 1u << lane;
    } else if (schedule_.should_defer_atomic()) {
      deferred.add(lane, address);
    } else {
      order[executing++] = lane;
      const bool has_late = note_passed(address), has_waiting = release_waiting(warp, address),
                 is_blocking = has_late || has_waiting;
      if (is_blocking) blocking.add(lane, address);
      deferred.take_at(addresses, address, [&](uint8_t overtaken) {
        if (!is_blocking) order[executing++] = overtaken;
        else warp.deferred_mask |= 1u << overtaken, next_.push_back({arrivals_++, warp.block, warp.warp, overtaken});
      });
    }
  }
  for (uint32_t k = 0; k < deferred.count; k++) wait(warp, addresses[deferred.lanes[k]], deferred.lanes[k]);
  return executing;
}

void DeferredAtomics::wait(WarpContext& warp, uint8_t* address, uint32_t lane) {
  warp.deferred_mask |= 1u << lane;
  AddressTable<Entry>& table = waiting_at(warp, address);
  table[table.add(address)] = {arrivals_++, warp.block, warp.warp, lane};
}

// Lets atomics execute that waited for one at this address.  Returns whether there is any.
bool DeferredAtomics::release_waiting(const WarpContext& warp, uint8_t* address) {
  AddressTable<Entry>& table = waiting_at(warp, address);
  table.remove_at(address, slots_);
  if (slots_.empty()) return false;
  release_removed(table);
  return true;
}

// Returns whether there are late atomics at this address, which must now be performed.
bool DeferredAtomics::note_passed(uint8_t* address) {
  if (!late_.waits_at(address)) return false;
  passed_.push_back(address);
  return true;
}

void DeferredAtomics::arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* order,
                                      uint32_t count, const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform) {
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t lane = order[k];
    const uint64_t operand_b = value_of(b, lane, bytes), operand_c = value_of(c, lane, bytes);
    uint8_t* const address = addresses[lane];
    if (schedule_.should_defer_atomic()) {
      Late& late = defer(warp, lane, address);
      late.i = &i, late.perform = perform, late.b = operand_b, late.c = operand_c;
      continue;
    }
    late_.remove_at(address, slots_);
    const auto perform_passed = [&](bool own) {
      for (uint32_t slot : slots_)
        if ((late_[slot].lane == lane && late_[slot].warp == warp.warp && late_[slot].block == warp.block) == own)
          perform_late(slot);
    };
    perform_passed(true);  // a lane's own atomics stay in order
    perform(warp, i, address, lane, operand_b, operand_c);
    perform_passed(false);
    slots_.clear();
    release_waiting(warp, address);
  }
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
  const uint32_t slot = late_.add(address);
  deferrals.push_back({arrivals_, slot, lane});
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
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const auto overlaps = [=](const uint8_t* at) { return at + 8 > addresses[l] && addresses[l] + bytes > at; };
    for (uint32_t offset = 0; offset < bytes; offset += late_.kGranuleBytes)
      late_.remove_near(addresses[l] + offset, overlaps, slots_);
  });
  perform_removed();
}

void DeferredAtomics::settle_passed() {
  for (uint8_t* address : passed_) settle_address(address);
  passed_.clear();
}

void DeferredAtomics::settle_all() {
  if (!late_.size()) return;
  late_.remove_if([](const Late&) { return true; }, slots_);
  std::sort(slots_.begin(), slots_.end(), [this](uint32_t a, uint32_t b) { return late_[a].arrival < late_[b].arrival; });
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

// The lanes execute in ascending order, which is that of their arrival at each address.
uint32_t DeferredAtomics::pop_next(uint32_t lanes) {
  const Entry first = next_.front();
  const auto follows = [&](const Entry& entry) { return entry.block == first.block && entry.warp == first.warp; };
  uint32_t popped = 0;
  do {
    const uint32_t lane = next_.front().lane;
    popped |= 1u << lane;
    lanes &= ~(1u << lane);
    next_.pop_front();
  } while (!late_.size() && !next_.empty() && follows(next_.front()) && lanes >> next_.front().lane & 1);
  return popped;
}

// Lets atomics execute that were removed from a table.
void DeferredAtomics::release_removed(AddressTable<Entry>& table) {
  for (uint32_t slot : slots_) next_.push_back(table[slot]), table.free(slot);
  slots_.clear();
}

// The same for waiting atomics of a table for which the predicate is true, in order of arrival.
template <class P> void DeferredAtomics::release_if(AddressTable<Entry>& table, P predicate) {
  table.remove_if(predicate, slots_);
  std::sort(slots_.begin(), slots_.end(), [&](uint32_t a, uint32_t b) { return table[a].arrival < table[b].arrival; });
  release_removed(table);
}

void DeferredAtomics::release_all() {
  settle_all();
  const auto all = [](const Entry&) { return true; };
  release_if(waiting_shared_, all);
  release_if(waiting_, all);
}

void DeferredAtomics::release_shared(uint32_t block) {
  if (!waiting_shared_.size()) return;
  release_if(waiting_shared_, [=](const Entry& entry) { return entry.block == block; });
}

}  // namespace vgpu
