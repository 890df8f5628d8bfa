#include "memory_trace.h"

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr uint64_t kMostLines = 20'000'000;

}  // namespace

void Trace::begin(const Launch& launch) {
  on_ = launch.number == launch_;
  if (on_) std::fprintf(to_, "%s %u\n", launch.program->name.c_str(), launch.threads());
}

void Trace::touch(const Lanes& w, const Instruction& i, const Touch& t) {
  if (!on_ || t.what == Touch::Read) return;
  for (uint32_t k = 0; k < t.count && written_ < kMostLines; k++) {
    Location at = locate(w, t.at[t.lanes[k]]);
    if (at.space == Location::None) continue;
    std::fprintf(to_, "%u %c %c%llu %llu %llu\n", i.line, t.what == Touch::Atomic ? 'a' : 's',
                 at.space == Location::Shared ? 's' : 'g', static_cast<unsigned long long>(at.allocation),
                 static_cast<unsigned long long>(at.offset), static_cast<unsigned long long>(thread_of(w, t.lanes[k])));
    written_++;
  }
}

}  // namespace vgpu
