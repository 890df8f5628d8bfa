// Detects data races with vector clocks and shadow memory (VGPU_CHECK=racecheck).
#include "racecheck.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxReadersPerCell = 8, kMaxRaces = 32;
constexpr size_t kMaxShadowCells = 1 << 22;

uint64_t clock_value(const std::map<uint64_t, uint64_t>& of, uint64_t who) {
  auto found = of.find(who);
  return found == of.end() ? 0 : found->second;
}

// Of shared memory each block has its own, perhaps where another block's was.
uint64_t shadow_key(const WarpContext& warp, const uint8_t* at) {
  bool shared = is_shared(warp, at);
  uint64_t offset = static_cast<uint64_t>(at - warp.shared);
  return shared ? (1ull << 63) | (uint64_t(warp.block) << 20) | offset >> 2 : reinterpret_cast<uint64_t>(at) >> 2;
}

const char* access_kind_name(AccessKind what) {
  return what == AccessKind::Read ? "read" : what == AccessKind::Write ? "write" : "atomic";
}

}  // namespace

void RaceDetector::VectorClock::join(const VectorClock& other) {
  for (auto [who, until] : other.blocks) blocks[who] = std::max(blocks[who], until);
  for (auto [who, until] : other.threads) threads[who] = std::max(threads[who], until);
}

void RaceDetector::on_launch_begin(const Launch&) {
  threads_.clear(), blocks_.clear(), shadow_memory_.clear(), release_clocks_.clear(), races_.clear();
  access_index_ = 0;
}

RaceDetector::ThreadState& RaceDetector::thread(const WarpContext& warp, uint64_t number) {
  auto [found, fresh] = threads_.try_emplace(number);
  if (fresh) blocks_[warp.block].threads.push_back(number);
  return found->second;
}

bool RaceDetector::happens_before(const AccessEpoch& one, const AccessEpoch& now) const {
  const BlockState& block = blocks_.at(now.block);
  if (one.thread == now.thread || (one.block == now.block && block.barriers > one.barriers)) return true;
  const VectorClock& own = threads_.at(now.thread).clock;
  return std::max(clock_value(own.blocks, one.block), clock_value(block.clock.blocks, one.block)) > one.barriers ||
         std::max(clock_value(own.threads, one.thread), clock_value(block.clock.threads, one.thread)) > one.epoch;
}

void RaceDetector::check_pair(const WarpContext& warp, const AccessEpoch& one, const AccessEpoch& now, const uint8_t* at) {
  if (!one.access_index || one.access_index == now.access_index || !(one.bytes & now.bytes) || (one.strong && now.strong))
    return;
  if (happens_before(one, now)) return;
  auto lines = std::make_tuple(one.line, now.line);
  if (races_.size() == kMaxRaces && !races_.count(lines)) return;
  Race& race = races_[lines];
  if (!race.times++) race.first = one, race.second = now, race.at = location_of(warp, at);
}

void RaceDetector::check_word(const WarpContext& warp, const uint8_t* at, AccessEpoch now) {
  if (shadow_memory_.size() == kMaxShadowCells && !shadow_memory_.count(shadow_key(warp, at))) return;
  ShadowCell& place = shadow_memory_[shadow_key(warp, at)];
  check_pair(warp, place.write, now, at);
  if (now.what != AccessKind::Read) {
    for (const AccessEpoch& one : place.reads) check_pair(warp, one, now, at);
    place.reads.clear();
    place.write = now;
    return;
  }
  auto same = std::find_if(place.reads.begin(), place.reads.end(),
                           [&](const AccessEpoch& one) { return one.thread == now.thread && one.bytes == now.bytes; });
  if (same != place.reads.end()) *same = now;
  else if (place.reads.size() < kMaxReadersPerCell) place.reads.push_back(now);
}

// What a strong access hands on: what was before the last fence, or is before it where it releases; what is read counts from
// the next fence on, or at once where it acquires.
void RaceDetector::synchronize(const WarpContext& warp, uint64_t number, const MemoryAccess& t, const uint8_t* at) {
  ThreadState& own = thread(warp, number);
  VectorClock& here = release_clocks_[shadow_key(warp, at)];
  if (t.order & kRelease) release(warp, number, own);
  if (t.kind != AccessKind::Write) (t.order & kAcquire ? own.clock : own.pending_acquire).join(here);
  if (t.kind == AccessKind::Read) return;
  here.join(own.release_clock);
  here.join(blocks_[warp.block].release_clock);
}

void RaceDetector::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  access_index_++;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.addresses[t.lane_order[k]];
    if (location_of(warp, at).space == Location::None) continue;
    uint64_t number = global_thread_index(warp, t.lane_order[k]);
    AccessEpoch now{number, warp.block, 0, thread(warp, number).epoch, access_index_, i.line, t.kind, t.strong(), 0xf};
    now.barriers = blocks_[warp.block].barriers;
    if (t.strong()) synchronize(warp, number, t, at);
    if (t.bytes < 4) now.bytes = static_cast<uint8_t>(((1u << t.bytes) - 1) << (reinterpret_cast<uint64_t>(at) & 3));
    for (uint32_t from = 0; from < t.bytes; from += 4) check_word(warp, at + from, now);
  }
}

void RaceDetector::release(const WarpContext& warp, uint64_t number, ThreadState& own) {
  const BlockState& block = blocks_[warp.block];
  own.release_clock = own.clock;
  own.release_clock.join(block.clock);
  own.release_clock.blocks[warp.block] = block.barriers;
  own.release_clock.threads[number] = ++own.epoch;
  own.fenced = true;
}

void RaceDetector::on_fence(const WarpContext& warp) {
  for (uint32_t left = warp.active_mask; left; left &= left - 1) {
    uint64_t number = global_thread_index(warp, static_cast<uint32_t>(__builtin_ctz(left)));
    ThreadState& own = thread(warp, number);
    own.clock.join(own.pending_acquire);
    own.pending_acquire = VectorClock();
    release(warp, number, own);
  }
}

void RaceDetector::on_block_barrier(const WarpContext& warp, bool) {
  BlockState& block = blocks_[warp.block];
  for (uint64_t one : block.threads) {
    ThreadState& own = threads_.at(one);
    block.clock.join(own.clock);
    block.clock.join(own.pending_acquire);
    own.clock = own.pending_acquire = VectorClock();
    // What one thread has put a fence behind, another one of the block hands on after the barrier.
    if (std::exchange(own.fenced, false)) block.release_clock.join(own.release_clock);
  }
  block.barriers++;
}

void RaceDetector::on_warp_sync(const WarpContext& warp, uint32_t mask) {
  VectorClock all;
  auto each_of = [&](auto f) {
    for (uint32_t left = mask; left; left &= left - 1) {
      uint64_t number = global_thread_index(warp, static_cast<uint32_t>(__builtin_ctz(left)));
      f(number, thread(warp, number));
    }
  };
  VectorClock release_clock, read;
  each_of([&](uint64_t number, ThreadState& own) {
    all.join(own.clock);
    release_clock.join(own.release_clock);
    read.join(own.pending_acquire);
    all.threads[number] = ++own.epoch;
  });
  each_of([&](uint64_t, ThreadState& own) {
    own.clock.join(all), own.release_clock.join(release_clock), own.pending_acquire.join(read);
  });
}

void RaceDetector::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads();
  auto place = [&](const AccessEpoch& one) {
    return std::string("the ") + access_kind_name(one.what) + " of line " + std::to_string(one.line) + " by thread " +
           std::to_string(one.thread % threads) + " of block " + std::to_string(one.block);
  };
  for (const auto& [lines, race] : races_) {
    std::string where =
        race.at.space == Location::Shared ? "shared memory" : "allocation " + std::to_string(race.at.allocation);
    std::fprintf(stderr, "vgpu: race in %s: %s and %s, at byte %llu of %s (%llu times)\n", launch.program->name.c_str(),
                 place(race.first).c_str(), place(race.second).c_str(), static_cast<unsigned long long>(race.at.offset),
                 where.c_str(), static_cast<unsigned long long>(race.times));
  }
}

}  // namespace vgpu
