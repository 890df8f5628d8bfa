#include "launch_report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMostPlaces = 1 << 18;        // of a launch, in memory
constexpr uint64_t kMostBytes = 256ull << 20;  // of the file
constexpr size_t kMostLines = 16, kMostShown = 4;
constexpr uint64_t kNobody = ~0ull;

std::string pair(const char* name, uint64_t value) { return "\"" + std::string(name) + "\": " + std::to_string(value); }
std::string three(const char* name, const uint32_t v[3]) {
  return "\"" + std::string(name) + "\": [" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) +
         "]";
}
const char* word(Touch::Shows shows) { return shows == Touch::Rounding ? "rounding" : shows == Touch::Last ? "last" : "old"; }

}  // namespace

void Report::touch(const Lanes& w, const Instruction& i, const Touch& t) {
  if (t.what != Touch::Atomic || t.shows == Touch::Nothing) return;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.at[t.lanes[k]];
    bool shared = is_shared(w, at);
    Key key{shared ? static_cast<uint64_t>(at - w.shared) : reinterpret_cast<uint64_t>(at), shared ? w.block + 1ull : 0,
            i.line};
    uint64_t thread = thread_of(w, t.lanes[k]);
    auto known = places_.find(key);
    if (known == places_.end()) {
      if (places_.size() == kMostPlaces) {
        left_out_++;
        continue;
      }
      known = places_.emplace(key, Place{locate(w, at), t.shows, 0, thread, kNobody}).first;
    }
    known->second.atomics++;
    if (known->second.second == kNobody && thread != known->second.first) known->second.second = thread;
  }
}

// The lines of PTX with an address that several threads came to, and of each the addresses with the most atomics.
std::string Report::of_lines() const {
  struct Line {
    uint64_t atomics = 0;
    std::vector<const Place*> places;
  };
  std::map<uint32_t, Line> lines;
  for (const auto& [key, place] : places_) {
    if (place.second == kNobody) continue;
    lines[key.line].atomics += place.atomics;
    lines[key.line].places.push_back(&place);
  }
  std::string text;
  size_t shown = 0;
  for (auto& [number, line] : lines) {
    if (shown++ == kMostLines) break;
    size_t some = std::min(line.places.size(), kMostShown);
    std::partial_sort(line.places.begin(), line.places.begin() + some, line.places.end(), [](const Place* a, const Place* b) {
      if (a->atomics != b->atomics) return a->atomics > b->atomics;
      return std::make_pair(a->at.allocation, a->at.offset) < std::make_pair(b->at.allocation, b->at.offset);
    });
    text += std::string(text.empty() ? "" : ", ") + "{" + pair("line", number) + ", \"shows\": \"" +
            word(line.places[0]->shows) + "\", " + pair("atomics", line.atomics) + ", " +
            pair("addresses", line.places.size()) + ", \"most\": [";
    for (size_t k = 0; k < some; k++) {
      const Place& p = *line.places[k];
      bool shared = p.at.space == Location::Shared;
      text += std::string(k ? ", " : "") + "{\"space\": \"" + (shared ? "shared" : "global") + "\", " +
              pair(shared ? "of_block" : "allocation", p.at.allocation) + ", " + pair("offset", p.at.offset) + ", " +
              pair("atomics", p.atomics) + ", \"threads\": [" + std::to_string(p.first) + ", " + std::to_string(p.second) +
              "]}";
    }
    text += "]}";
  }
  return text;
}

void Report::end(const Launch& launch, const Outcome& outcome) {
  write("{" + pair("launch", launch.number) + ", \"kernel\": \"" + launch.program->name + "\", " + three("grid", launch.grid) +
        ", " + three("block", launch.block) + ", " + pair("instructions", outcome.instructions) + ", " +
        pair("atomics", outcome.atomics) + ", " + pair("choices", outcome.choices) + ", \"order_dependent\": [" + of_lines() +
        "]" + (left_out_ ? ", " + pair("atomics_left_out", left_out_) : "") + "}\n");
}

void Report::stood_in(const char* call, uint64_t launch) {
  write("{" + pair("before_launch", launch) + ", \"stood_in\": \"" + call + "\"}\n");
}

void Report::write(std::string text) {
  if (written_ > kMostBytes) return;
  written_ += text.size();
  if (written_ > kMostBytes) text = "{\"left_out\": \"all launches from here on: the report is full\"}\n";
  std::fwrite(text.data(), 1, text.size(), to_);
  std::fflush(to_);
}

}  // namespace vgpu
