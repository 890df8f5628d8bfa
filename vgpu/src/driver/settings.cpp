// Parses the VGPU_* environment variables; struct Settings says what each means.
#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace vgpu {
namespace {

struct Variable {
  const char* name;
  const char* allowed;  // description of valid values
  void (*read)(Settings& settings, const std::string& value);  // throws std::invalid_argument for an invalid value
};

uint64_t parse_number(const std::string& text, uint64_t min, uint64_t max) {
  const bool is_number = !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string::npos;
  const uint64_t value = is_number ? std::stoull(text) : 0;
  if (!is_number || value < min || value > max) throw std::invalid_argument("no such number");
  return value;
}

std::set<std::string> parse_list(const std::string& text, const std::set<std::string>& allowed, const std::string& reason) {
  std::set<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, comma - begin);
    if (!allowed.count(item)) throw std::invalid_argument(reason + " " + (item.empty() ? "nothing" : item));
    items.insert(item);
    begin = comma + 1;
  }
  return items;
}

std::string parse_choice(const std::string& text, const std::set<std::string>& allowed) {
  if (!allowed.count(text)) throw std::invalid_argument("unknown code");
  return text;
}

void read_cpu_fallbacks(Settings& settings, const std::string& value) {
  settings.cpu_fallbacks = parse_list(value, {"cublas", "cudnn", "all"}, "no CPU fallbacks for");
  if (settings.cpu_fallbacks.count("all")) settings.cpu_fallbacks = {"cublas", "cudnn"};
}

void read_trace(Settings& settings, const std::string& value) {
  const size_t colon = value.find(':');
  if (colon == std::string::npos || colon + 1 == value.size()) throw std::invalid_argument("no launch or no file");
  settings.traced_launch = parse_number(value.substr(0, colon), 0, UINT64_MAX);
  settings.trace_file = value.substr(colon + 1);
}

const Variable kVariables[] = {
    {"VGPU_SCHEDULE", nullptr,
     [](Settings& settings, const std::string& value) { settings.schedule = Schedule::parse(value); }},
    {"VGPU_COMPUTE_CAPABILITY", "a compute capability as a number from 30 to 199: 70 for 7.0",
     [](Settings& settings, const std::string& value) { settings.capability = parse_number(value, 30, 199); }},
    {"VGPU_CODE", "ptx or sass",
     [](Settings& settings, const std::string& value) { settings.code = parse_choice(value, {"ptx", "sass"}); }},
    {"VGPU_MEMORY_MIB", "a number of MiB from 1 to 1048576",
     [](Settings& settings, const std::string& value) { settings.memory_mib = parse_number(value, 1, 1 << 20); }},
    {"VGPU_MULTIPROCESSORS", "a number of multiprocessors from 1 to 1024",
     [](Settings& settings, const std::string& value) { settings.multiprocessors = parse_number(value, 1, 1024); }},
    {"VGPU_PLACEMENT", "a seed, a number from 0",
     [](Settings& settings, const std::string& value) { settings.placement = parse_number(value, 0, UINT64_MAX); }},
    {"VGPU_MAX_INSTRUCTIONS", "a number of instructions; 0: no limit",
     [](Settings& settings, const std::string& value) { settings.max_instructions = parse_number(value, 0, UINT64_MAX); }},
    {"VGPU_LOG", "0 or 1", [](Settings& settings, const std::string& value) { settings.log = parse_number(value, 0, 1); }},
    {"VGPU_CHECK", "racecheck, initcheck, memcheck, order, or several, separated by commas",
     [](Settings& settings, const std::string& value) {
       settings.checks = parse_list(value, {"racecheck", "initcheck", "memcheck", "order"}, "unknown check");
     }},
    {"VGPU_CPU_FALLBACKS", "cublas, cudnn, both separated by a comma, or all", read_cpu_fallbacks},
    {"VGPU_MEMORY_TRACE", "LAUNCH:FILE, LAUNCH a number from 0", read_trace},
    {"VGPU_REPORT", "a file", [](Settings& settings, const std::string& value) { settings.report_file = value; }},
    {"VGPU_USED", "a file", [](Settings& settings, const std::string& value) { settings.used_file = value; }},
};

Settings read_environment() {
  Settings result;
  for (const Variable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    if (!value || !*value) continue;
    try {
      variable.read(result, value);
    } catch (const std::invalid_argument& error) {
      if (variable.allowed)
        std::fprintf(stderr, "vgpu: %s: %s in '%s': expected %s\n", variable.name, error.what(), value, variable.allowed);
      else
        std::fprintf(stderr, "vgpu: %s: %s\n", variable.name, error.what());  // the message names the value and the valid ones
      std::exit(2);
    }
  }
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings instance = read_environment();
  return instance;
}

}  // namespace vgpu
