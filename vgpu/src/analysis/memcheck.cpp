// Detects accesses that run from one shared array into the next (VGPU_CHECK=memcheck).
#include "memcheck.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxLines = 32;

// Describes the offset relative to the last variable that ends before it.
std::string describe_offset(const DecodedFunction& program, uint32_t offset) {
  const DecodedFunction::Variable* last = nullptr;
  for (const DecodedFunction::Variable& variable : program.shared_variables)
    if (variable.end <= offset && (!last || variable.end > last->end)) last = &variable;
  return last ? std::to_string(offset - last->end) + " bytes behind the end of " + last->name : "before all variables";
}

}  // namespace

// Dynamic shared memory lies behind the variables, and counts as one of them.
bool Memcheck::is_within_variable(uint32_t offset, uint32_t bytes) const {
  const DecodedFunction& program = *launch_->program;
  if (offset >= program.shared_bytes) return true;
  return std::any_of(
      program.shared_variables.begin(), program.shared_variables.end(),
      [=](const DecodedFunction::Variable& variable) { return offset >= variable.begin && offset + bytes <= variable.end; });
}

void Memcheck::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* address = t.addresses[t.lane_order[k]];
    if (!is_shared(warp, address)) continue;
    const uint32_t offset = static_cast<uint32_t>(address - warp.shared);
    if (is_within_variable(offset, t.bytes) || (accesses_.size() == kMaxLines && !accesses_.count(i.line))) continue;
    auto [access, is_new] = accesses_.try_emplace(i.line);
    if (is_new) access->second = {global_thread_index(warp, t.lane_order[k]), offset, t.kind, 0};
    access->second.times++;
  }
}

void Memcheck::on_launch_end(const Launch& launch, const LaunchResult&) {
  const uint64_t threads = launch.threads_per_block();
  for (const auto& [line, access] : accesses_) {
    const char* kind_name = access.kind == AccessKind::Read ? "read" : access.kind == AccessKind::Write ? "write" : "atomic";
    std::fprintf(stderr,
                 "vgpu: memcheck: out of bounds in %s: the %s of line %u by thread %llu of block %llu, in shared memory "
                 "%s (%llu times)\n",
                 launch.program->name.c_str(), kind_name, line, static_cast<unsigned long long>(access.thread % threads),
                 static_cast<unsigned long long>(access.thread / threads),
                 describe_offset(*launch.program, access.offset).c_str(), static_cast<unsigned long long>(access.times));
  }
}

}  // namespace vgpu
