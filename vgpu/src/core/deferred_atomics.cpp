// Defers atomics so that a later one at the same address executes first (schedule atomics:SEED).
#include "deferred_atomics.h"

#include <algorithm>
#include <utility>

#include "schedule.h"

namespace vgpu {
namespace {

constexpr uint32_t kNone = ~0u;
constexpr uint32_t kBucketBits = 14, kGranule = 4;  // 16 bytes, the largest access, are in one bucket
constexpr size_t kMaxLate = 1 << kBucketBits;

uint64_t granule(const uint8_t* address) { return reinterpret_cast<uint64_t>(address) >> kGranule; }

uint64_t value_of(const uint8_t* values, uint32_t lane, uint32_t bytes) {
  if (bytes == 2) return reinterpret_cast<const uint16_t*>(values)[lane];
  if (bytes == 4) return reinterpret_cast<const uint32_t*>(values)[lane];
  return reinterpret_cast<const uint64_t*>(values)[lane];
}

}  // namespace

uint32_t DeferredAtomics::select_arriving(WarpContext& warp, uint8_t* const* addresses, uint8_t* order, uint32_t count) {
  uint32_t executing = 0;
  bool is_blocked = false;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t lane = order[k];
    if (is_blocked) {
      warp.blocked_mask |= 1u << lane;
    } else if (!warp.deferral_done && schedule_.should_defer_atomic()) {
      warp.deferred_mask |= 1u << lane;
      waiting_[addresses[lane]].push_back({arrivals_++, warp.block, warp.warp, lane});
    } else {
      order[executing++] = static_cast<uint8_t>(lane);
      is_blocked = on_atomic_done(addresses[lane]);
    }
  }
  return executing;
}

// Lets atomics execute that waited for one at this address.  Returns whether there is any.
bool DeferredAtomics::on_atomic_done(uint8_t* address) {
  auto waiting = waiting_.find(address);
  if (waiting != waiting_.end()) {
    next_.insert(next_.end(), waiting->second.begin(), waiting->second.end());
    waiting_.erase(waiting);
  }
  bool has_late = false;
  if (late_count_)
    for (uint32_t slot = bucket(address); slot != kNone; slot = late_[slot].next) has_late |= late_[slot].address == address;
  if (has_late) passed_.push_back(address);
  return has_late || !next_.empty();
}

void DeferredAtomics::arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* order,
                                      uint32_t count, const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform) {
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t lane = order[k];
    const uint64_t operand_b = value_of(b, lane, bytes), operand_c = value_of(c, lane, bytes);
    if (schedule_.should_defer_atomic()) {
      Late& late = defer(warp, lane, addresses[lane]);
      late.i = &i, late.perform = perform, late.b = operand_b, late.c = operand_c;
      continue;
    }
    if (late_count_ && bucket(addresses[lane]) != kNone) {
      settle_address(addresses[lane], &warp, lane);  // a lane's own atomics stay in order
      perform(warp, i, addresses[lane], lane, operand_b, operand_c);
      settle_address(addresses[lane]);
    } else {
      perform(warp, i, addresses[lane], lane, operand_b, operand_c);
    }
    if (!waiting_.empty()) on_atomic_done(addresses[lane]);
  }
}

uint32_t& DeferredAtomics::bucket(const uint8_t* address) {
  return buckets_[granule(address) * 0x9e3779b97f4a7c15ull >> (64 - kBucketBits)];
}

// Adds a late atomic; the caller sets the fields i, perform, b and c.
DeferredAtomics::Late& DeferredAtomics::defer(WarpContext& warp, uint32_t lane, uint8_t* address) {
  if (buckets_.empty()) {
    buckets_.assign(kMaxLate, kNone);
    proxy_.memory = warp.memory, proxy_.schedule = warp.schedule, proxy_.observer = warp.observer,
    proxy_.visible_writes = warp.visible_writes;
    proxy_.shared_bytes = warp.shared_bytes, proxy_.threads = warp.threads;
  }
  if (late_count_ == kMaxLate) settle_all();
  uint32_t slot = static_cast<uint32_t>(late_.size());
  if (free_.empty()) late_.emplace_back();
  else slot = free_.back(), free_.pop_back();
  uint32_t* last = &bucket(address);
  while (*last != kNone) last = &late_[*last].next;
  *last = slot;
  late_count_++;
  std::vector<DeferralList::Entry>& deferrals = warp.deferrals->all;
  if (deferrals.size() >= kWarpSize && deferrals.size() == deferrals.capacity())
    deferrals.erase(std::remove_if(deferrals.begin(), deferrals.end(),
                                   [this](const DeferralList::Entry& entry) { return !is_pending(entry); }),
                    deferrals.end());
  deferrals.push_back({arrivals_, slot, lane});
  Late& late = late_[slot];
  late.address = address, late.arrival = arrivals_++, late.shared = warp.shared, late.block = warp.block, late.warp = warp.warp,
  late.lane = lane, late.next = kNone;
  return late;
}

// Performs a late atomic, which the caller has removed from its bucket.
void DeferredAtomics::perform(uint32_t slot) {
  Late& late = late_[slot];
  uint8_t* const address = std::exchange(late.address, nullptr);
  free_.push_back(slot);
  late_count_--;
  proxy_.block = late.block, proxy_.warp = late.warp, proxy_.shared = late.shared, proxy_.active_mask = 1u << late.lane;
  late.perform(proxy_, *late.i, address, late.lane, late.b, late.c);
}

// Performs late atomics in the bucket of this address for which the predicate is true, in order of arrival.
template <class F> void DeferredAtomics::settle_if(const uint8_t* address, F predicate) {
  for (uint32_t* link = &bucket(address); *link != kNone;) {
    const uint32_t slot = *link;
    if (!predicate(late_[slot])) {
      link = &late_[slot].next;
      continue;
    }
    *link = late_[slot].next;
    perform(slot);
  }
}

// Performs late atomics at this address: all, or with a warp those of one of its lanes.
void DeferredAtomics::settle_address(uint8_t* address, const WarpContext* warp, uint32_t lane) {
  settle_if(address, [=](const Late& late) {
    return late.address == address && (!warp || (late.block == warp->block && late.warp == warp->warp && late.lane == lane));
  });
}

void DeferredAtomics::settle(DeferralList& own, uint32_t lanes) {
  size_t kept = 0;
  for (const DeferralList::Entry& entry : own.all) {
    if (!is_pending(entry)) continue;
    if (!(lanes >> entry.lane & 1)) {
      own.all[kept++] = entry;
      continue;
    }
    uint32_t* link = &bucket(late_[entry.slot].address);
    while (*link != entry.slot) link = &late_[*link].next;
    *link = late_[entry.slot].next;
    perform(entry.slot);
  }
  own.all.resize(kept);
}

void DeferredAtomics::settle_at(const WarpContext& warp, uint8_t* const* addresses, uint32_t bytes) {
  if (!late_count_) return;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    settle_if(addresses[l],
              [=](const Late& late) { return late.address + 8 > addresses[l] && addresses[l] + bytes > late.address; });
  });
}

void DeferredAtomics::settle_passed() {
  for (uint8_t* address : passed_) settle_address(address);
  passed_.clear();
}

void DeferredAtomics::settle_all() {
  if (!late_count_) return;
  std::vector<std::pair<uint64_t, uint32_t>> slots;
  for (uint32_t slot = 0; slot < late_.size(); slot++)
    if (late_[slot].address) slots.emplace_back(late_[slot].arrival, slot);
  std::sort(slots.begin(), slots.end());
  std::fill(buckets_.begin(), buckets_.end(), kNone);
  for (const auto& [arrival, slot] : slots) perform(slot);
}

void DeferredAtomics::settle_shared(DeferralList& deferrals, const WarpContext& warp) {
  for (const DeferralList::Entry& entry : deferrals.all) {
    if (!is_pending(entry)) continue;
    uint8_t* address = late_[entry.slot].address;
    if (address >= warp.shared && address < warp.shared + warp.shared_bytes) settle_address(address);
  }
  deferrals.all.clear();
}

DeferredAtomics::Entry DeferredAtomics::pop_next() {
  Entry entry = next_.front();
  next_.pop_front();
  return entry;
}

void DeferredAtomics::release_all() {
  settle_all();
  for (const auto& [address, entries] : waiting_) next_.insert(next_.end(), entries.begin(), entries.end());
  std::sort(next_.begin(), next_.end(), [](const Entry& a, const Entry& b) { return a.arrival < b.arrival; });
  waiting_.clear();
}

}  // namespace vgpu
