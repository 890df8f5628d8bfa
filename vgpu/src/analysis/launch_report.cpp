// Writes VGPU_REPORT: one line of JSON for each launch, with its order-dependent atomics.
#include "launch_report.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMaxAtomicSites = 1 << 18;        // of a launch, in memory
constexpr uint64_t kMaxReportBytes = 256ull << 20;  // of the file
constexpr size_t kMaxReportedLines = 16, kMaxAddressesPerLine = 4;
constexpr uint64_t kNoThread = ~0ull;

std::string json_pair(const char* name, uint64_t value) { return "\"" + std::string(name) + "\": " + std::to_string(value); }
std::string json_triple(const char* name, const uint32_t v[3]) {
  return "\"" + std::string(name) + "\": [" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) +
         "]";
}
const char* order_sensitivity_name(OrderSensitivity sensitivity) {
  switch (sensitivity) {
    case OrderSensitivity::Rounding: return "rounding";
    case OrderSensitivity::LastWriterWins: return "last_writer";
    default: return "returns_old";
  }
}

}  // namespace

void LaunchReport::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  if (t.kind != AccessKind::Atomic || t.sensitivity == OrderSensitivity::Nothing) return;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.addresses[t.lane_order[k]];
    bool shared = is_shared(warp, at);
    SiteKey key{shared ? static_cast<uint64_t>(at - warp.shared) : reinterpret_cast<uint64_t>(at),
                shared ? warp.block + 1ull : 0, i.line};
    uint64_t thread = global_thread_index(warp, t.lane_order[k]);
    auto known = atomic_sites_.find(key);
    if (known == atomic_sites_.end()) {
      if (atomic_sites_.size() == kMaxAtomicSites) {
        omitted_++;
        continue;
      }
      known = atomic_sites_.emplace(key, AtomicSite{location_of(warp, at), t.sensitivity, 0, thread, kNoThread}).first;
    }
    known->second.atomics++;
    if (known->second.second == kNoThread && thread != known->second.first) known->second.second = thread;
  }
}

// The lines of PTX with an address that several threads came to, and of each the addresses with the most atomics.
std::string LaunchReport::order_dependent_lines() const {
  struct Line {
    uint64_t atomics = 0;
    std::vector<const AtomicSite*> places;
  };
  std::map<uint32_t, Line> lines;
  for (const auto& [key, place] : atomic_sites_) {
    if (place.second == kNoThread) continue;
    lines[key.line].atomics += place.atomics;
    lines[key.line].places.push_back(&place);
  }
  std::string text;
  size_t shown = 0;
  for (auto& [number, line] : lines) {
    if (shown++ == kMaxReportedLines) break;
    size_t some = std::min(line.places.size(), kMaxAddressesPerLine);
    std::partial_sort(line.places.begin(), line.places.begin() + some, line.places.end(),
                      [](const AtomicSite* a, const AtomicSite* b) {
                        if (a->atomics != b->atomics) return a->atomics > b->atomics;
                        return std::make_pair(a->at.allocation, a->at.offset) < std::make_pair(b->at.allocation, b->at.offset);
                      });
    text += std::string(text.empty() ? "" : ", ") + "{" + json_pair("line", number) + ", \"order_sensitivity\": \"" +
            order_sensitivity_name(line.places[0]->sensitivity) + "\", " + json_pair("atomics", line.atomics) + ", " +
            json_pair("addresses", line.places.size()) + ", \"most\": [";
    for (size_t k = 0; k < some; k++) {
      const AtomicSite& p = *line.places[k];
      bool shared = p.at.space == Location::Shared;
      text += std::string(k ? ", " : "") + "{\"space\": \"" + (shared ? "shared" : "global") + "\", " +
              json_pair(shared ? "of_block" : "allocation", p.at.allocation) + ", " + json_pair("offset", p.at.offset) + ", " +
              json_pair("atomics", p.atomics) + ", \"threads\": [" + std::to_string(p.first) + ", " + std::to_string(p.second) +
              "]}";
    }
    text += "]}";
  }
  return text;
}

void LaunchReport::on_launch_end(const Launch& launch, const LaunchResult& outcome) {
  write("{" + json_pair("launch", launch.index) + ", \"kernel\": \"" + launch.program->name + "\", \"code\": \"" + launch.code +
        "\", " + json_triple("grid", launch.grid) + ", " + json_triple("block", launch.block) + ", " +
        json_pair("instructions", outcome.instructions) + ", " + json_pair("atomics", outcome.atomics) + ", " +
        json_pair("choices", outcome.schedule_choices) + ", \"order_dependent\": [" + order_dependent_lines() + "]" +
        (verdicts_ ? ", \"order\": " + verdicts_->verdict() : "") +
        (omitted_ ? ", " + json_pair("atomics_left_out", omitted_) : "") + "}\n");
}

void LaunchReport::on_fallback(const char* call, uint64_t launch) {
  write("{" + json_pair("before_launch", launch) + ", \"cpu_fallback\": \"" + call + "\"}\n");
}

void LaunchReport::write(std::string text) {
  if (written_ > kMaxReportBytes) return;
  written_ += text.size();
  if (written_ > kMaxReportBytes) text = "{\"left_out\": \"all launches from here on: the report is full\"}\n";
  if (std::fwrite(text.data(), 1, text.size(), to_) == text.size() && !std::fflush(to_)) return;
  // Whoever reads a report that lacks a launch would take the others for all.
  std::fprintf(stderr, "vgpu: VGPU_REPORT: %s\n", std::strerror(errno));
  std::_Exit(2);
}

}  // namespace vgpu
