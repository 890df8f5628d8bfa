// Formats the findings of one operation as JSON or as text.
#include "findings.h"

#include <cstdio>
#include <vector>

#include "analysis/report_text.h"

namespace vgpu {
namespace {

constexpr size_t kMaxReasons = 64;  // pairs of lines
// The names of Rule in reports, in its order.
constexpr const char* kRules[] = {"same_value", "one_value", "commuting", "exact_sum", "update_loop", "exploration"};

struct Reason {
  std::string name;
  std::vector<CodePosition> positions;
  std::string lines() const {
    std::string text;
    for (const CodePosition& position : positions) text += (text.empty() ? "" : ", ") + std::to_string(position.line);
    return text;
  }
};
Reason reason_of(const std::string& name, uint32_t position, uint32_t other_position) {
  Reason reason{name, {}};
  for (const uint32_t number : {position, other_position})
    if (number) reason.positions.push_back(find_position(number));
  return reason;
}

}  // namespace

void Findings::add(const char* reason, uint32_t position, uint32_t other_position, uint64_t times) {
  const auto key = std::make_tuple(std::string(reason), position, other_position);
  if (reasons_.size() < kMaxReasons || reasons_.count(key)) reasons_[key] += times;
}

std::string Findings::json() const {
  std::string reasons, rules;
  for (const auto& [key, times] : reasons_) {
    const Reason reason = std::apply(reason_of, key);
    std::string places;
    for (const CodePosition& position : reason.positions) places += (places.empty() ? "" : ", ") + json_position(position);
    reasons += std::string(reasons.empty() ? "" : ", ") + "{\"reason\": \"" + reason.name + "\", \"lines\": [" +
               reason.lines() + "], \"positions\": [" + places + "], \"times\": " + std::to_string(times) + "}";
  }
  for (uint32_t k = 0; k < sizeof kRules / sizeof *kRules; k++)
    if (rules_ >> k & 1) rules += std::string(rules.empty() ? "\"" : ", \"") + kRules[k] + "\"";
  return std::string("{\"proved\": ") + (reasons_.empty() ? "true" : "false") + ", \"reasons\": [" + reasons +
         "], \"rules\": [" + rules + "]}";
}

void Findings::print(const std::string& operation) const {
  for (const auto& [key, times] : reasons_) {
    const Reason reason = std::apply(reason_of, key);
    std::string places;
    std::string last;
    for (const CodePosition& position : reason.positions) {
      const std::string place = describe(position, operation);
      if (place != last) places += (places.empty() ? " of " : " and ") + place;
      last = place;
    }
    std::fprintf(stderr, "vgpu: order: %s is not proved: %s%s (%llu times)\n", operation.c_str(), reason.name.c_str(),
                 places.c_str(), static_cast<unsigned long long>(times));
  }
}

}  // namespace vgpu
