// Writes VGPU_REPORT: one line of JSON for each launch, with its order-dependent atomics.
#include "launch_report.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "core/launch.h"
#include "order/findings.h"
#include "report_text.h"

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
// The field "order" of what ends a proof without a finding of the prover.
std::string unproved(const char* reason) {
  Findings findings;
  findings.add(reason, 0, 0);
  return "\"order\": " + findings.json();
}
const char* order_sensitivity_name(OrderSensitivity sensitivity) {
  switch (sensitivity) {
    case OrderSensitivity::Rounding: return "rounding";
    case OrderSensitivity::LastWriterWins: return "last_writer";
    default: return "returns_old";
  }
}

}  // namespace

void LaunchReport::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& access) {
  if (access.kind != AccessKind::Atomic || access.sensitivity == OrderSensitivity::Nothing) return;
  for (uint32_t k = 0; k < access.count; k++) {
    const uint8_t* address = access.addresses[access.lane_order[k]];
    bool shared = is_shared(warp, address);
    SiteKey key{shared ? static_cast<uint64_t>(address - warp.shared) : reinterpret_cast<uint64_t>(address),
                shared ? warp.block + 1ull : 0, i.position};
    uint64_t thread = global_thread_index(warp, access.lane_order[k]);
    auto site = atomic_sites_.find(key);
    if (site == atomic_sites_.end()) {
      if (atomic_sites_.size() == kMaxAtomicSites) {
        omitted_++;
        continue;
      }
      site = atomic_sites_.emplace(key, AtomicSite{location_of(warp, address), access.sensitivity, 0, thread, kNoThread}).first;
    }
    site->second.atomics++;
    if (site->second.second == kNoThread && thread != site->second.first) site->second.second = thread;
  }
}

// Returns JSON for the lines whose atomics several threads execute at one address, with the addresses with most atomics of each.
std::string LaunchReport::order_dependent_lines() const {
  struct Line {
    uint64_t atomics = 0;
    std::vector<const AtomicSite*> sites;
  };
  std::map<uint32_t, Line> lines;
  for (const auto& [key, site] : atomic_sites_) {
    if (site.second == kNoThread) continue;
    lines[key.position].atomics += site.atomics;
    lines[key.position].sites.push_back(&site);
  }
  std::string text;
  size_t line_count = 0;
  for (auto& [number, line] : lines) {
    if (line_count++ == kMaxReportedLines) break;
    const CodePosition position = find_position(number);
    size_t reported = std::min(line.sites.size(), kMaxAddressesPerLine);
    std::partial_sort(line.sites.begin(), line.sites.begin() + reported, line.sites.end(),
                      [](const AtomicSite* a, const AtomicSite* b) {
                        if (a->atomics != b->atomics) return a->atomics > b->atomics;
                        return std::make_pair(a->at.allocation, a->at.offset) < std::make_pair(b->at.allocation, b->at.offset);
                      });
    text += std::string(text.empty() ? "" : ", ") + "{" + json_pair("line", position.line) +
            ", \"position\": " + json_position(position) + ", \"order_sensitivity\": \"" +
            order_sensitivity_name(line.sites[0]->sensitivity) + "\", " + json_pair("atomics", line.atomics) + ", " +
            json_pair("addresses", line.sites.size()) + ", \"most\": [";
    for (size_t k = 0; k < reported; k++) {
      const AtomicSite& reported_site = *line.sites[k];
      bool shared = reported_site.at.space == Location::Shared;
      text += std::string(k ? ", " : "") + "{\"space\": \"" + (shared ? "shared" : "global") + "\", " +
              json_pair(shared ? "of_block" : "allocation", reported_site.at.allocation) + ", " +
              json_pair("offset", reported_site.at.offset) + ", " + json_pair("atomics", reported_site.atomics) +
              ", \"threads\": [" + std::to_string(reported_site.first) + ", " + std::to_string(reported_site.second) + "]}";
    }
    text += "]}";
  }
  return text;
}

void LaunchReport::on_launch_end(const Launch& launch, const LaunchResult& result) {
  write("{" + json_pair("launch", launch.index) + ", \"kernel\": \"" + launch.program->name + "\", \"code\": \"" + launch.code +
        "\", " + json_triple("grid", launch.grid) + ", " + json_triple("block", launch.block) + ", " +
        json_pair("instructions", result.instructions) + ", " + json_pair("atomics", result.atomics) + ", " +
        json_pair("choices", result.schedule_choices) + ", \"order_dependent\": [" + order_dependent_lines() + "]" +
        (verdicts_ ? ", \"order\": " + verdicts_->verdict() : "") +
        (omitted_ ? ", " + json_pair("atomics_left_out", omitted_) : "") + "}\n");
}

void LaunchReport::on_fallback(const char* call, uint64_t launch) {
  write("{" + json_pair("before_launch", launch) + ", \"cpu_fallback\": \"" + call + "\"}\n");
}

void LaunchReport::add_refused_launch(const std::string& kernel) {
  write("{\"kernel\": " + json_string(kernel) + ", " + unproved("refused") + "}\n");
}

void LaunchReport::add_unsupported(const std::string& name) {
  write("{\"operation\": " + json_string(name) + ", " + unproved("unsupported") + "}\n");
}

void LaunchReport::write(std::string text) {
  std::lock_guard<std::mutex> guard(lock_);
  if (written_ > kMaxReportBytes) return;
  written_ += text.size();
  if (written_ > kMaxReportBytes) text = "{\"left_out\": \"all launches from here on: the report is full\"}\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && !std::fflush(file_)) return;
  // An incomplete report must not be taken for a complete one.
  std::fprintf(stderr, "vgpu: VGPU_REPORT: %s\n", std::strerror(errno));
  std::_Exit(2);
}

}  // namespace vgpu
