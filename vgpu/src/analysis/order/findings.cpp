// Collects why an operation is not proved, and which rules carried it; writes both as JSON.
#include "findings.h"

#include <cstdio>

namespace vgpu {
namespace {

constexpr size_t kMaxReasons = 64;  // pairs of lines
constexpr const char* kRules[] = {"same_value", "one_value", "commuting", "exact_sum", "update_loop"};

std::string lines_of(uint32_t one, uint32_t other) {
  return (one ? std::to_string(one) : "") + (one && other ? ", " : "") + (other ? std::to_string(other) : "");
}

}  // namespace

void Findings::add(const char* reason, uint32_t line, uint32_t other_line) {
  const auto key = std::make_tuple(std::string(reason), line, other_line);
  if (reasons_.size() < kMaxReasons || reasons_.count(key)) reasons_[key]++;
}

std::string Findings::json() const {
  std::string reasons, rules;
  for (const auto& [key, times] : reasons_) {
    const auto& [reason, one, other] = key;
    reasons += std::string(reasons.empty() ? "" : ", ") + "{\"reason\": \"" + reason + "\", \"lines\": [" +
               lines_of(one, other) + "], \"times\": " + std::to_string(times) + "}";
  }
  for (uint32_t k = 0; k < sizeof kRules / sizeof *kRules; k++)
    if (rules_ >> k & 1) rules += std::string(rules.empty() ? "\"" : ", \"") + kRules[k] + "\"";
  return std::string("{\"proved\": ") + (reasons_.empty() ? "true" : "false") + ", \"reasons\": [" + reasons +
         "], \"rules\": [" + rules + "]}";
}

void Findings::print(const char* what, const char* position) const {
  for (const auto& [key, times] : reasons_) {
    const auto& [reason, one, other] = key;
    const std::string lines = lines_of(one, other);
    const std::string place = lines.empty() ? "" : std::string(" of ") + position + (other ? "s " : " ") + lines;
    std::fprintf(stderr, "vgpu: order: %s is not proved: %s%s (%llu times)\n", what, reason.c_str(), place.c_str(),
                 static_cast<unsigned long long>(times));
  }
}

}  // namespace vgpu
