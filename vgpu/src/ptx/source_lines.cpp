// Follows inlined code to the places where it was inlined.
#include "source_lines.h"

#include <charconv>

namespace vgpu::ptx {
namespace {

constexpr size_t kMaxInlined = 16;  // calls

// Parses three numbers from tokens[at] on; returns false if they are not there.
bool parse_place(const std::vector<Token>& tokens, size_t at, size_t end, std::array<uint32_t, 3>& place) {
  if (at > end || end - at < place.size()) return false;
  for (uint32_t& number : place) {
    const std::string_view text = tokens[at++].text;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) return false;
  }
  return true;
}

}  // namespace

void SourceLines::add(const std::vector<Token>& tokens, size_t begin, size_t end) {
  Place place{}, call_place{};
  if (!parse_place(tokens, begin + 1, end, place)) return;
  for (size_t k = begin; k < end; k++)
    if (tokens[k].text == "inlined_at" && parse_place(tokens, k + 1, end, call_place)) call_places_[place] = call_place;
  std::vector<SourceLine>& lines = lines_[tokens[begin].line];
  lines.clear();
  for (size_t depth = 0; depth < kMaxInlined; depth++) {
    const std::string file = file_name_(place[0]);
    if (!file.empty() && place[1]) lines.push_back({file, place[1]});
    const auto call = call_places_.find(place);
    if (call == call_places_.end()) return;
    place = call->second;
  }
}

}  // namespace vgpu::ptx
