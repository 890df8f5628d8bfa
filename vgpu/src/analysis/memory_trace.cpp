// Writes the atomics and stores of one launch in their order (VGPU_MEMORY_TRACE).
#include "memory_trace.h"

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr uint64_t kMaxLines = 20'000'000;

}  // namespace

void MemoryTrace::on_launch_begin(const Launch& launch) {
  is_enabled_ = launch.index == launch_;
  if (is_enabled_) std::fprintf(file_, "%s %u\n", launch.program->name.c_str(), launch.threads_per_block());
}

void MemoryTrace::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) {
  if (!is_enabled_ || access.kind == AccessKind::Read) return;
  for (uint32_t k = 0; k < access.count && written_ < kMaxLines; k++) {
    Location location = location_of(warp, access.addresses[access.lane_order[k]]);
    if (location.space == Location::None) continue;
    std::fprintf(file_, "%u %c %c%llu %llu %llu\n", i.line, access.kind == AccessKind::Atomic ? 'a' : 's',
                 location.space == Location::Shared ? 's' : 'g', static_cast<unsigned long long>(location.allocation),
                 static_cast<unsigned long long>(location.offset),
                 static_cast<unsigned long long>(global_thread_index(warp, access.lane_order[k])));
    written_++;
  }
}

}  // namespace vgpu
