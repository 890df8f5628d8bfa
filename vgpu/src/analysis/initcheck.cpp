// Detects reads of uninitialized memory (VGPU_CHECK=initcheck).
#include "initcheck.h"

#include <cstdio>
#include <cstring>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxLines = 32;

uint64_t address_of(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

void UninitializedReads::on_launch_begin(const Launch&) { shared_.clear(), reads_.clear(), recent_ = CachedRange(); }

UninitializedReads::SharedShadow& UninitializedReads::shared(const WarpContext& warp) {
  SharedShadow& found = shared_[warp.shared];
  if (found.written.empty() || found.block != warp.block) found = {warp.block, std::vector<uint8_t>(warp.shared_bytes)};
  return found;
}

// What is known of these bytes; nullptr: nothing.  No allocation goes while a launch runs.
uint8_t* UninitializedReads::written(const WarpContext& warp, const uint8_t* at, uint32_t bytes) {
  if (is_shared(warp, at)) return &shared(warp).written[static_cast<size_t>(at - warp.shared)];
  if (address_of(at) < recent_.begin || address_of(at) + bytes > recent_.end) {
    const Allocation found = warp.memory->find(address_of(at));
    if (!found.contains(address_of(at), address_of(at) + bytes)) return nullptr;  // the lane's own
    recent_ = {found.begin, found.end, warp.memory->written_map(found)};
  }
  return recent_.written ? recent_.written + (address_of(at) - recent_.begin) : nullptr;
}

void UninitializedReads::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.addresses[t.lane_order[k]];
    uint8_t* known = written(warp, at, t.bytes);
    if (!known) continue;
    if (t.kind != AccessKind::Write) {
      const void* first = std::memchr(known, 0, t.bytes);
      if (first && (reads_.size() < kMaxLines || reads_.count(i.line))) {
        const uint8_t* where = at + (static_cast<const uint8_t*>(first) - known);
        auto [read, fresh] = reads_.try_emplace(i.line);
        if (fresh) read->second = {global_thread_index(warp, t.lane_order[k]), location_of(warp, where), 0};
        read->second.times++;
      }
    }
    if (t.kind != AccessKind::Read) std::memset(known, 1, t.bytes);
  }
}

void UninitializedReads::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads();
  for (const auto& [line, read] : reads_) {
    std::string where =
        read.at.space == Location::Shared ? "shared memory" : "allocation " + std::to_string(read.at.allocation);
    std::fprintf(
        stderr,
        "vgpu: never written in %s: the read of line %u by thread %llu of block %llu, at byte %llu of %s (%llu times)\n",
        launch.program->name.c_str(), line, static_cast<unsigned long long>(read.thread % threads),
        static_cast<unsigned long long>(read.thread / threads), static_cast<unsigned long long>(read.at.offset), where.c_str(),
        static_cast<unsigned long long>(read.times));
  }
}

}  // namespace vgpu
