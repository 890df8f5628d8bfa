#include "initcheck.h"

#include <cstdio>
#include <cstring>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMostLines = 32;

uint64_t number(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

void Initialised::begin(const Launch&) { shared_.clear(), reads_.clear(), recent_ = Known(); }

Initialised::Shared& Initialised::shared(const Lanes& w) {
  Shared& found = shared_[w.shared];
  if (found.written.empty() || found.block != w.block) found = {w.block, std::vector<uint8_t>(w.shared_bytes)};
  return found;
}

// What is known of these bytes; nullptr: nothing.  No allocation goes while a launch runs.
uint8_t* Initialised::written(const Lanes& w, const uint8_t* at, uint32_t bytes) {
  if (is_shared(w, at)) return &shared(w).written[static_cast<size_t>(at - w.shared)];
  if (number(at) < recent_.begin || number(at) + bytes > recent_.end) {
    const Extent found = w.memory->find(number(at));
    if (!found.holds(number(at), number(at) + bytes)) return nullptr;  // the lane's own
    recent_ = {found.begin, found.end, w.memory->written(found)};
  }
  return recent_.written ? recent_.written + (number(at) - recent_.begin) : nullptr;
}

void Initialised::touch(const Lanes& w, const Instruction& i, const Touch& t) {
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.at[t.lanes[k]];
    uint8_t* known = written(w, at, t.bytes);
    if (!known) continue;
    if (t.what != Touch::Write) {
      const void* first = std::memchr(known, 0, t.bytes);
      if (first && (reads_.size() < kMostLines || reads_.count(i.line))) {
        const uint8_t* where = at + (static_cast<const uint8_t*>(first) - known);
        auto [read, fresh] = reads_.try_emplace(i.line);
        if (fresh) read->second = {thread_of(w, t.lanes[k]), locate(w, where), 0};
        read->second.times++;
      }
    }
    if (t.what != Touch::Read) std::memset(known, 1, t.bytes);
  }
}

void Initialised::end(const Launch& launch, const Outcome&) {
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
