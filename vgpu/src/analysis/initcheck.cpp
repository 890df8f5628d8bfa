// Detects reads of uninitialized memory (VGPU_CHECK=initcheck), by bitmaps with a bit for each byte that was written.
#include "initcheck.h"

#include <cstdio>
#include <cstring>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxReportedLines = 32;  // of PTX; offsets in machine code

uint64_t to_address(const uint8_t* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

void UninitializedReads::on_launch_begin(const Launch&) { shared_.clear(), reads_.clear(), recent_ = CachedRange(); }

UninitializedReads::SharedShadow& UninitializedReads::shared_shadow(const WarpContext& warp) {
  SharedShadow& shadow = shared_[warp.shared];
  if (shadow.written.empty() || shadow.block != warp.block)
    shadow = {warp.block, std::vector<uint8_t>(bytes_of_map(warp.shared_bytes))};
  return shadow;
}

// Returns the position of this address in its bitmap; null if it has none.  Allocations do not change while a launch runs.
WrittenBytes UninitializedReads::written_map(const WarpContext& warp, const uint8_t* address, uint32_t bytes) {
  if (is_shared(warp, address)) return {shared_shadow(warp).written.data(), static_cast<uint64_t>(address - warp.shared)};
  if (to_address(address) < recent_.begin || to_address(address) + bytes > recent_.end) {
    const Allocation allocation = warp.memory->find(to_address(address));
    if (!allocation.contains(to_address(address), to_address(address) + bytes)) return {};  // the lane's own memory
    recent_ = {allocation.begin, allocation.end, warp.memory->written_map(allocation)};
  }
  return recent_.written + (to_address(address) - recent_.begin);
}

void UninitializedReads::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) {
  for (uint32_t k = 0; k < access.count; k++) {
    const uint8_t* address = access.addresses[access.lane_order[k]];
    const WrittenBytes map = written_map(warp, address, access.bytes);
    if (!map) continue;
    if (access.kind != AccessKind::Write) {
      const uint64_t unwritten = first_unwritten(map, access.bytes);
      if (unwritten < access.bytes && (reads_.size() < kMaxReportedLines || reads_.count(i.line))) {
        const uint8_t* read_address = address + unwritten;
        auto [read, is_new] = reads_.try_emplace(i.line);
        if (is_new) read->second = {global_thread_index(warp, access.lane_order[k]), location_of(warp, read_address), 0};
        read->second.times++;
      }
    }
    if (access.kind != AccessKind::Read) set_written(map, access.bytes);
  }
}

void UninitializedReads::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads_per_block();
  for (const auto& [line, read] : reads_) {
    std::string memory =
        read.at.space == Location::Shared ? "shared memory" : "allocation " + std::to_string(read.at.allocation);
    std::fprintf(
        stderr,
        "vgpu: never written in %s: the read of line %u by thread %llu of block %llu, at byte %llu of %s (%llu times)\n",
        launch.program->name.c_str(), line, static_cast<unsigned long long>(read.thread % threads),
        static_cast<unsigned long long>(read.thread / threads), static_cast<unsigned long long>(read.at.offset), memory.c_str(),
        static_cast<unsigned long long>(read.times));
  }
}

}  // namespace vgpu
