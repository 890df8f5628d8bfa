// Defers atomics so that a later one to the same address comes first (schedule atomics:SEED).
#include "deferred_atomics.h"

#include <algorithm>
#include <utility>

#include "schedule.h"

namespace vgpu {
namespace {

constexpr uint32_t kNone = ~0u;
constexpr uint32_t kBucketBits = 14, kGranule = 4;  // 16 bytes, the largest access, are in one bucket
constexpr size_t kMaxLate = 1 << kBucketBits;

uint64_t granule(const uint8_t* at) { return reinterpret_cast<uint64_t>(at) >> kGranule; }

uint64_t value_of(const uint8_t* from, uint32_t lane, uint32_t bytes) {
  if (bytes == 2) return reinterpret_cast<const uint16_t*>(from)[lane];
  if (bytes == 4) return reinterpret_cast<const uint32_t*>(from)[lane];
  return reinterpret_cast<const uint64_t*>(from)[lane];
}

}  // namespace

uint32_t DeferredAtomics::select_arriving(WarpContext& warp, uint8_t* const* at, uint8_t* order, uint32_t count) {
  uint32_t now = 0;
  bool stopped = false;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t lane = order[k];
    if (stopped) {
      warp.blocked_mask |= 1u << lane;
    } else if (!warp.deferral_done && schedule_.should_defer_atomic()) {
      warp.deferred_mask |= 1u << lane;
      waiting_[at[lane]].push_back({arrivals_++, warp.block, warp.warp, lane});
    } else {
      order[now++] = static_cast<uint8_t>(lane);
      stopped = on_atomic_done(at[lane]);
    }
  }
  return now;
}

// One was done at this address, for which others waited; is somebody next?
bool DeferredAtomics::on_atomic_done(uint8_t* at) {
  auto found = waiting_.find(at);
  if (found != waiting_.end()) {
    next_.insert(next_.end(), found->second.begin(), found->second.end());
    waiting_.erase(found);
  }
  bool late = false;
  if (late_count_)
    for (uint32_t slot = bucket(at); slot != kNone; slot = late_[slot].next) late |= late_[slot].at == at;
  if (late) passed_.push_back(at);
  return late || !next_.empty();
}

void DeferredAtomics::arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* at, const uint8_t* order,
                                      uint32_t count, const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform) {
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t lane = order[k];
    const uint64_t first = value_of(b, lane, bytes), second = value_of(c, lane, bytes);
    if (schedule_.should_defer_atomic()) {
      Late& one = defer(warp, lane, at[lane]);
      one.i = &i, one.perform = perform, one.b = first, one.c = second;
      continue;
    }
    if (late_count_ && bucket(at[lane]) != kNone) {
      settle_address(at[lane], &warp, lane);  // a lane's own are in order
      perform(warp, i, at[lane], lane, first, second);
      settle_address(at[lane]);
    } else {
      perform(warp, i, at[lane], lane, first, second);
    }
    if (!waiting_.empty()) on_atomic_done(at[lane]);
  }
}

uint32_t& DeferredAtomics::bucket(const uint8_t* at) {
  return buckets_[granule(at) * 0x9e3779b97f4a7c15ull >> (64 - kBucketBits)];
}

// The rest of it is the caller's to set.
DeferredAtomics::Late& DeferredAtomics::defer(WarpContext& warp, uint32_t lane, uint8_t* at) {
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
  uint32_t* last = &bucket(at);
  while (*last != kNone) last = &late_[*last].next;
  *last = slot;
  late_count_++;
  std::vector<DeferralList::Entry>& own = warp.deferrals->all;
  if (own.size() >= kWarpSize && own.size() == own.capacity())
    own.erase(std::remove_if(own.begin(), own.end(), [this](const DeferralList::Entry& old) { return !alive(old); }),
              own.end());
  own.push_back({arrivals_, slot, lane});
  Late& one = late_[slot];
  one.at = at, one.arrival = arrivals_++, one.shared = warp.shared, one.block = warp.block, one.warp = warp.warp,
  one.lane = lane, one.next = kNone;
  return one;
}

// It is of no bucket any more.
void DeferredAtomics::perform(uint32_t slot) {
  Late& one = late_[slot];
  uint8_t* const at = std::exchange(one.at, nullptr);
  free_.push_back(slot);
  late_count_--;
  proxy_.block = one.block, proxy_.warp = one.warp, proxy_.shared = one.shared, proxy_.active_mask = 1u << one.lane;
  one.perform(proxy_, *one.i, at, one.lane, one.b, one.c);
}

// Those in the bucket of this address that are wanted, in the order in which they came.
template <class F> void DeferredAtomics::settle_if(const uint8_t* at, F wanted) {
  for (uint32_t* link = &bucket(at); *link != kNone;) {
    const uint32_t slot = *link;
    if (!wanted(late_[slot])) {
      link = &late_[slot].next;
      continue;
    }
    *link = late_[slot].next;
    perform(slot);
  }
}

// All, or one lane's own.
void DeferredAtomics::settle_address(uint8_t* at, const WarpContext* of, uint32_t lane) {
  settle_if(at, [=](const Late& one) {
    return one.at == at && (!of || (one.block == of->block && one.warp == of->warp && one.lane == lane));
  });
}

void DeferredAtomics::settle(DeferralList& own, uint32_t lanes) {
  size_t left = 0;
  for (const DeferralList::Entry& one : own.all) {
    if (!alive(one)) continue;
    if (!(lanes >> one.lane & 1)) {
      own.all[left++] = one;
      continue;
    }
    uint32_t* link = &bucket(late_[one.slot].at);
    while (*link != one.slot) link = &late_[*link].next;
    *link = late_[one.slot].next;
    perform(one.slot);
  }
  own.all.resize(left);
}

void DeferredAtomics::settle_at(const WarpContext& warp, uint8_t* const* at, uint32_t bytes) {
  if (!late_count_) return;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    settle_if(at[l], [=](const Late& one) { return one.at + 8 > at[l] && at[l] + bytes > one.at; });
  });
}

void DeferredAtomics::settle_passed() {
  for (uint8_t* at : passed_) settle_address(at);
  passed_.clear();
}

void DeferredAtomics::settle_all() {
  if (!late_count_) return;
  std::vector<std::pair<uint64_t, uint32_t>> all;
  for (uint32_t slot = 0; slot < late_.size(); slot++)
    if (late_[slot].at) all.emplace_back(late_[slot].arrival, slot);
  std::sort(all.begin(), all.end());
  std::fill(buckets_.begin(), buckets_.end(), kNone);
  for (const auto& [arrival, slot] : all) perform(slot);
}

void DeferredAtomics::settle_shared(DeferralList& own, const WarpContext& warp) {
  for (const DeferralList::Entry& one : own.all) {
    if (!alive(one)) continue;
    uint8_t* at = late_[one.slot].at;
    if (at >= warp.shared && at < warp.shared + warp.shared_bytes) settle_address(at);
  }
  own.all.clear();
}

DeferredAtomics::Entry DeferredAtomics::pop_next() {
  Entry one = next_.front();
  next_.pop_front();
  return one;
}

void DeferredAtomics::release_all() {
  settle_all();
  for (const auto& [at, those] : waiting_) next_.insert(next_.end(), those.begin(), those.end());
  std::sort(next_.begin(), next_.end(), [](const Entry& a, const Entry& b) { return a.arrival < b.arrival; });
  waiting_.clear();
}

}  // namespace vgpu
