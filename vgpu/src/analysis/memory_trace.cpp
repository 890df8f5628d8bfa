// Writes the atomics and stores of one launch in their order (VGPU_MEMORY_TRACE).
#include "memory_trace.h"

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr uint64_t kMaxLines = 20'000'000;

}  // namespace

void MemoryTrace::on_launch_begin(const Launch& launch) {
  on_ = launch.index == launch_;
  if (on_) std::fprintf(to_, "%s %u\n", launch.program->name.c_str(), launch.threads());
}

void MemoryTrace::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  if (!on_ || t.kind == AccessKind::Read) return;
  for (uint32_t k = 0; k < t.count && written_ < kMaxLines; k++) {
    Location at = location_of(warp, t.addresses[t.lane_order[k]]);
    if (at.space == Location::None) continue;
    std::fprintf(to_, "%u %c %c%llu %llu %llu\n", i.line, t.kind == AccessKind::Atomic ? 'a' : 's',
                 at.space == Location::Shared ? 's' : 'g', static_cast<unsigned long long>(at.allocation),
                 static_cast<unsigned long long>(at.offset),
                 static_cast<unsigned long long>(global_thread_index(warp, t.lane_order[k])));
    written_++;
  }
}

}  // namespace vgpu
