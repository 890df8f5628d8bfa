// Formats the findings of one operation as JSON or as text.
#include "findings.h"

#include <cstdio>

namespace vgpu {
namespace {

constexpr size_t kMaxReasons = 64;  // pairs of lines
// The names of Rule in reports, in its order.
constexpr const char* kRules[] = {"same_value", "one_value", "commuting", "exact_sum", "update_loop", "exploration"};

std::string lines_of(uint32_t line, uint32_t other_line) {
  return (line ? std::to_string(line) : "") + (line && other_line ? ", " : "") + (other_line ? std::to_string(other_line) : "");
}

}  // namespace

void Findings::add(const char* reason, uint32_t line, uint32_t other_line, uint64_t times) {
  const auto key = std::make_tuple(std::string(reason), line, other_line);
  if (reasons_.size() < kMaxReasons || reasons_.count(key)) reasons_[key] += times;
}

std::string Findings::json() const {
  std::string reasons, rules;
  for (const auto& [key, times] : reasons_) {
    const auto& [reason, line, other_line] = key;
    reasons += std::string(reasons.empty() ? "" : ", ") + "{\"reason\": \"" + reason + "\", \"lines\": [" +
               lines_of(line, other_line) + "], \"times\": " + std::to_string(times) + "}";
  }
  for (uint32_t k = 0; k < sizeof kRules / sizeof *kRules; k++)
    if (rules_ >> k & 1) rules += std::string(rules.empty() ? "\"" : ", \"") + kRules[k] + "\"";
  return std::string("{\"proved\": ") + (reasons_.empty() ? "true" : "false") + ", \"reasons\": [" + reasons +
         "], \"rules\": [" + rules + "]}";
}

void Findings::print(const char* operation, const char* position) const {
  for (const auto& [key, times] : reasons_) {
    const auto& [reason, line, other_line] = key;
    const std::string lines = lines_of(line, other_line);
    const std::string location = lines.empty() ? "" : std::string(" of ") + position + (other_line ? "s " : " ") + lines;
    std::fprintf(stderr, "vgpu: order: %s is not proved: %s%s (%llu times)\n", operation, reason.c_str(), location.c_str(),
                 static_cast<unsigned long long>(times));
  }
}

}  // namespace vgpu
