#include "memcheck.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMostLines = 32;

// The variable that ends before this place, and how far before.
std::string behind(const Program& program, uint32_t offset) {
  const Program::Variable* last = nullptr;
  for (const Program::Variable& one : program.shared_variables)
    if (one.end <= offset && (!last || one.end > last->end)) last = &one;
  return last ? std::to_string(offset - last->end) + " bytes behind the end of " + last->name : "before all variables";
}

}  // namespace

// What the launch brings lies behind the variables, and to its end.
bool Memcheck::declared(uint32_t offset, uint32_t bytes) const {
  const Program& program = *launch_->program;
  if (offset >= program.shared_bytes) return true;
  return std::any_of(program.shared_variables.begin(), program.shared_variables.end(),
                     [=](const Program::Variable& one) { return offset >= one.begin && offset + bytes <= one.end; });
}

void Memcheck::touch(const Lanes& w, const Instruction& i, const Touch& t) {
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.at[t.lanes[k]];
    if (!is_shared(w, at)) continue;
    const uint32_t offset = static_cast<uint32_t>(at - w.shared);
    if (declared(offset, t.bytes) || (found_.size() == kMostLines && !found_.count(i.line))) continue;
    auto [access, fresh] = found_.try_emplace(i.line);
    if (fresh) access->second = {thread_of(w, t.lanes[k]), offset, t.what, 0};
    access->second.times++;
  }
}

void Memcheck::end(const Launch& launch, const Outcome&) {
  const uint64_t threads = launch.threads();
  for (const auto& [line, one] : found_) {
    const char* what = one.what == Touch::Read ? "read" : one.what == Touch::Write ? "write" : "atomic";
    std::fprintf(stderr,
                 "vgpu: memcheck: out of bounds in %s: the %s of line %u by thread %llu of block %llu, in shared memory "
                 "%s (%llu times)\n",
                 launch.program->name.c_str(), what, line, static_cast<unsigned long long>(one.thread % threads),
                 static_cast<unsigned long long>(one.thread / threads), behind(*launch.program, one.offset).c_str(),
                 static_cast<unsigned long long>(one.times));
  }
}

}  // namespace vgpu
