// Detects accesses that run from one shared array into the next (VGPU_CHECK=memcheck).
#include "memcheck.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxLines = 32;

// The variable that ends before this place, and how far before.
std::string behind(const DecodedFunction& program, uint32_t offset) {
  const DecodedFunction::Variable* last = nullptr;
  for (const DecodedFunction::Variable& one : program.shared_variables)
    if (one.end <= offset && (!last || one.end > last->end)) last = &one;
  return last ? std::to_string(offset - last->end) + " bytes behind the end of " + last->name : "before all variables";
}

}  // namespace

// What the launch brings lies behind the variables, and to its end.
bool Memcheck::declared(uint32_t offset, uint32_t bytes) const {
  const DecodedFunction& program = *launch_->program;
  if (offset >= program.shared_bytes) return true;
  return std::any_of(program.shared_variables.begin(), program.shared_variables.end(),
                     [=](const DecodedFunction::Variable& one) { return offset >= one.begin && offset + bytes <= one.end; });
}

void Memcheck::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.addresses[t.lane_order[k]];
    if (!is_shared(warp, at)) continue;
    const uint32_t offset = static_cast<uint32_t>(at - warp.shared);
    if (declared(offset, t.bytes) || (found_.size() == kMaxLines && !found_.count(i.line))) continue;
    auto [access, fresh] = found_.try_emplace(i.line);
    if (fresh) access->second = {global_thread_index(warp, t.lane_order[k]), offset, t.kind, 0};
    access->second.times++;
  }
}

void Memcheck::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads();
  for (const auto& [line, one] : found_) {
    const char* what = one.what == AccessKind::Read ? "read" : one.what == AccessKind::Write ? "write" : "atomic";
    std::fprintf(stderr,
                 "vgpu: memcheck: out of bounds in %s: the %s of line %u by thread %llu of block %llu, in shared memory "
                 "%s (%llu times)\n",
                 launch.program->name.c_str(), what, line, static_cast<unsigned long long>(one.thread % threads),
                 static_cast<unsigned long long>(one.thread / threads), behind(*launch.program, one.offset).c_str(),
                 static_cast<unsigned long long>(one.times));
  }
}

}  // namespace vgpu
