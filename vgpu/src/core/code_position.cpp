// The numbers of all decoded instructions.  Modules may be unloaded while analyses still refer to their code, so entries are kept.
#include "code_position.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace vgpu {
namespace {

struct Entry {
  uint32_t first;  // number of its first instruction
  std::string function;
  const char* unit;
  std::vector<uint32_t> lines;  // of its instructions
  std::map<uint32_t, std::vector<SourceLine>> source_lines;
};
struct Entries {
  std::mutex lock;
  std::vector<Entry> by_number;
  uint32_t next = 1;
  static Entries& get() {
    static Entries* entries = new Entries;
    return *entries;
  }
};

}  // namespace

void number_instructions(DecodedFunction& function) {
  Entries& entries = Entries::get();
  std::lock_guard<std::mutex> guard(entries.lock);
  if (function.code.size() >= kMaxCodePosition - entries.next) return;  // their positions stay unknown
  std::vector<LinkedPart> parts = function.parts;
  if (parts.empty()) parts.push_back({function.name, 0, 0, function.source_lines});
  for (size_t k = 0; k < parts.size(); k++) {
    const size_t end = k + 1 < parts.size() ? parts[k + 1].begin : function.code.size();
    Entry entry{entries.next, parts[k].name, function.position_unit, {}, parts[k].source_lines};
    for (size_t n = parts[k].begin; n < end; n++) {
      function.code[n].position = entries.next++;
      entry.lines.push_back(function.code[n].line - parts[k].first_line);
    }
    entries.by_number.push_back(std::move(entry));
  }
}

CodePosition find_position(uint32_t position) {
  Entries& entries = Entries::get();
  std::lock_guard<std::mutex> guard(entries.lock);
  auto entry = std::upper_bound(entries.by_number.begin(), entries.by_number.end(), position,
                                [](uint32_t number, const Entry& candidate) { return number < candidate.first; });
  if (!position || entry == entries.by_number.begin()) return {};
  const Entry& found = *--entry;
  CodePosition result{found.function, found.unit, found.lines.at(position - found.first), {}};
  const auto source = found.source_lines.upper_bound(result.line);
  if (source != found.source_lines.begin()) result.source = std::prev(source)->second;
  return result;
}

}  // namespace vgpu
