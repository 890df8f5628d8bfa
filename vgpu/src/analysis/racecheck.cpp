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

uint64_t clock_value(const std::map<uint64_t, uint64_t>& clock, uint64_t owner) {
  auto entry = clock.find(owner);
  return entry == clock.end() ? 0 : entry->second;
}

// Returns the key of the word at an address.  Blocks may have their shared memory at the same address, so it has its own keys.
uint64_t shadow_key(const WarpContext& warp, const uint8_t* address) {
  bool shared = is_shared(warp, address);
  uint64_t offset = static_cast<uint64_t>(address - warp.shared);
  return shared ? (1ull << 63) | (uint64_t(warp.block) << 20) | offset >> 2 : reinterpret_cast<uint64_t>(address) >> 2;
}

const char* access_kind_name(AccessKind kind) {
  return kind == AccessKind::Read ? "read" : kind == AccessKind::Write ? "write" : "atomic";
}

}  // namespace

void RaceDetector::VectorClock::join(const VectorClock& other) {
  for (auto [owner, time] : other.blocks) blocks[owner] = std::max(blocks[owner], time);
  for (auto [owner, time] : other.threads) threads[owner] = std::max(threads[owner], time);
}

void RaceDetector::on_launch_begin(const Launch&) {
  threads_.clear(), blocks_.clear(), shadow_memory_.clear(), release_clocks_.clear(), races_.clear();
  access_index_ = 0;
}

RaceDetector::ThreadState& RaceDetector::thread(const WarpContext& warp, uint64_t number) {
  auto [state, is_new] = threads_.try_emplace(number);
  if (is_new) blocks_[warp.block].threads.push_back(number);
  return state->second;
}

bool RaceDetector::happens_before(const AccessEpoch& earlier, const AccessEpoch& now) const {
  const BlockState& block = blocks_.at(now.block);
  if (earlier.thread == now.thread || (earlier.block == now.block && block.barriers > earlier.barriers)) return true;
  const VectorClock& own = threads_.at(now.thread).clock;
  return std::max(clock_value(own.blocks, earlier.block), clock_value(block.clock.blocks, earlier.block)) > earlier.barriers ||
         std::max(clock_value(own.threads, earlier.thread), clock_value(block.clock.threads, earlier.thread)) > earlier.epoch;
}

void RaceDetector::check_pair(const WarpContext& warp, const AccessEpoch& earlier, const AccessEpoch& now,
                              const uint8_t* address) {
  if (!earlier.access_index || earlier.access_index == now.access_index || !(earlier.bytes & now.bytes) ||
      (earlier.strong && now.strong))
    return;
  if (happens_before(earlier, now)) return;
  auto lines = std::make_tuple(earlier.line, now.line);
  if (races_.size() == kMaxRaces && !races_.count(lines)) return;
  Race& race = races_[lines];
  if (!race.times++) race.first = earlier, race.second = now, race.at = location_of(warp, address);
}

void RaceDetector::check_word(const WarpContext& warp, const uint8_t* address, AccessEpoch now) {
  if (shadow_memory_.size() == kMaxShadowCells && !shadow_memory_.count(shadow_key(warp, address))) return;
  ShadowCell& cell = shadow_memory_[shadow_key(warp, address)];
  check_pair(warp, cell.write, now, address);
  if (now.kind != AccessKind::Read) {
    for (const AccessEpoch& read : cell.reads) check_pair(warp, read, now, address);
    cell.reads.clear();
    cell.write = now;
    return;
  }
  auto previous_read = std::find_if(cell.reads.begin(), cell.reads.end(), [&](const AccessEpoch& read) {
    return read.thread == now.thread && read.bytes == now.bytes;
  });
  if (previous_read != cell.reads.end()) *previous_read = now;
  else if (cell.reads.size() < kMaxReadersPerCell) cell.reads.push_back(now);
}

// Synchronizes by a strong access.  A write publishes what happened before the thread's last fence, or before the access if it
// releases.  A read acquires with the thread's next fence, or at once if it acquires.
void RaceDetector::synchronize(const WarpContext& warp, uint64_t number, const MemoryAccess& access, const uint8_t* address) {
  ThreadState& state = thread(warp, number);
  VectorClock& location_clock = release_clocks_[shadow_key(warp, address)];
  if (access.order & kRelease) release(warp, number, state);
  if (access.kind != AccessKind::Write) (access.order & kAcquire ? state.clock : state.pending_acquire).join(location_clock);
  if (access.kind == AccessKind::Read) return;
  location_clock.join(state.release_clock);
  location_clock.join(blocks_[warp.block].release_clock);
}

void RaceDetector::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) {
  access_index_++;
  for (uint32_t k = 0; k < access.count; k++) {
    const uint8_t* address = access.addresses[access.lane_order[k]];
    if (location_of(warp, address).space == Location::None) continue;
    uint64_t number = global_thread_index(warp, access.lane_order[k]);
    AccessEpoch now{number,      warp.block,         0,  thread(warp, number).epoch, access_index_, i.line,
                    access.kind, access.is_strong(), 0xf};
    now.barriers = blocks_[warp.block].barriers;
    if (access.is_strong()) synchronize(warp, number, access, address);
    if (access.bytes < 4)
      now.bytes = static_cast<uint8_t>(((1u << access.bytes) - 1) << (reinterpret_cast<uint64_t>(address) & 3));
    for (uint32_t offset = 0; offset < access.bytes; offset += 4) check_word(warp, address + offset, now);
  }
}

void RaceDetector::release(const WarpContext& warp, uint64_t number, ThreadState& state) {
  const BlockState& block = blocks_[warp.block];
  state.release_clock = state.clock;
  state.release_clock.join(block.clock);
  state.release_clock.blocks[warp.block] = block.barriers;
  state.release_clock.threads[number] = ++state.epoch;
  state.fenced = true;
}

void RaceDetector::on_fence(const WarpContext& warp) {
  for (uint32_t remaining = warp.active_mask; remaining; remaining &= remaining - 1) {
    uint64_t number = global_thread_index(warp, static_cast<uint32_t>(__builtin_ctz(remaining)));
    ThreadState& state = thread(warp, number);
    state.clock.join(state.pending_acquire);
    state.pending_acquire = VectorClock();
    release(warp, number, state);
  }
}

void RaceDetector::on_block_barrier(const WarpContext& warp, bool) {
  BlockState& block = blocks_[warp.block];
  for (uint64_t number : block.threads) {
    ThreadState& state = threads_.at(number);
    block.clock.join(state.clock);
    block.clock.join(state.pending_acquire);
    state.clock = state.pending_acquire = VectorClock();
    // After the barrier, any thread of the block may publish what one of them has released by a fence.
    if (std::exchange(state.fenced, false)) block.release_clock.join(state.release_clock);
  }
  block.barriers++;
}

void RaceDetector::on_warp_sync(const WarpContext& warp, uint32_t mask) {
  VectorClock joined_clock;
  auto for_each_thread = [&](auto f) {
    for (uint32_t remaining = mask; remaining; remaining &= remaining - 1) {
      uint64_t number = global_thread_index(warp, static_cast<uint32_t>(__builtin_ctz(remaining)));
      f(number, thread(warp, number));
    }
  };
  VectorClock release_clock, acquired_clock;
  for_each_thread([&](uint64_t number, ThreadState& state) {
    joined_clock.join(state.clock);
    release_clock.join(state.release_clock);
    acquired_clock.join(state.pending_acquire);
    joined_clock.threads[number] = ++state.epoch;
  });
  for_each_thread([&](uint64_t, ThreadState& state) {
    state.clock.join(joined_clock), state.release_clock.join(release_clock), state.pending_acquire.join(acquired_clock);
  });
}

void RaceDetector::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads_per_block();
  auto describe = [&](const AccessEpoch& access) {
    return std::string("the ") + access_kind_name(access.kind) + " of line " + std::to_string(access.line) + " by thread " +
           std::to_string(access.thread % threads) + " of block " + std::to_string(access.block);
  };
  for (const auto& [lines, race] : races_) {
    std::string memory =
        race.at.space == Location::Shared ? "shared memory" : "allocation " + std::to_string(race.at.allocation);
    std::fprintf(stderr, "vgpu: race in %s: %s and %s, at byte %llu of %s (%llu times)\n", launch.program->name.c_str(),
                 describe(race.first).c_str(), describe(race.second).c_str(), static_cast<unsigned long long>(race.at.offset),
                 memory.c_str(), static_cast<unsigned long long>(race.times));
  }
}

}  // namespace vgpu
