// Parses the VGPU_* environment variables.
#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace vgpu {
namespace {

struct Variable {
  const char* name;
  const char* allowed;  // in words
  void (*read)(Settings& to, const std::string& value);  // std::invalid_argument: it is none
};

uint64_t number(const std::string& text, uint64_t least, uint64_t most) {
  const bool digits = !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string::npos;
  const uint64_t value = digits ? std::stoull(text) : 0;
  if (!digits || value < least || value > most) throw std::invalid_argument("no such number");
  return value;
}

std::set<std::string> words(const std::string& text, const std::set<std::string>& known, const std::string& reason) {
  std::set<std::string> found;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, comma - from);
    if (!known.count(word)) throw std::invalid_argument(reason + " " + (word.empty() ? "nothing" : word));
    found.insert(word);
    from = comma + 1;
  }
  return found;
}

std::string one_word(const std::string& text, const std::set<std::string>& known) {
  if (!known.count(text)) throw std::invalid_argument("unknown code");
  return text;
}

void read_cpu_fallbacks(Settings& to, const std::string& value) {
  to.cpu_fallbacks = words(value, {"cublas", "cudnn", "all"}, "no CPU fallbacks for");
  if (to.cpu_fallbacks.count("all")) to.cpu_fallbacks = {"cublas", "cudnn"};
}

void read_trace(Settings& to, const std::string& value) {
  const size_t colon = value.find(':');
  if (colon == std::string::npos || colon + 1 == value.size()) throw std::invalid_argument("no launch or no file");
  to.traced = number(value.substr(0, colon), 0, UINT64_MAX);
  to.trace = value.substr(colon + 1);
}

const Variable kVariables[] = {
    {"VGPU_SCHEDULE", nullptr, [](Settings& to, const std::string& v) { to.schedule = Schedule::parse(v); }},
    {"VGPU_COMPUTE_CAPABILITY", "a compute capability as a number from 30 to 199: 70 for 7.0",
     [](Settings& to, const std::string& v) { to.capability = number(v, 30, 199); }},
    {"VGPU_CODE", "ptx or sass", [](Settings& to, const std::string& v) { to.code = one_word(v, {"ptx", "sass"}); }},
    {"VGPU_MEMORY_MIB", "a number of MiB from 1 to 1048576",
     [](Settings& to, const std::string& v) { to.memory_mib = number(v, 1, 1 << 20); }},
    {"VGPU_MULTIPROCESSORS", "a number of multiprocessors from 1 to 1024",
     [](Settings& to, const std::string& v) { to.multiprocessors = number(v, 1, 1024); }},
    {"VGPU_PLACEMENT", "a seed, a number from 0",
     [](Settings& to, const std::string& v) { to.placement = number(v, 0, UINT64_MAX); }},
    {"VGPU_MAX_INSTRUCTIONS", "a number of instructions; 0: no limit",
     [](Settings& to, const std::string& v) { to.limit = number(v, 0, UINT64_MAX); }},
    {"VGPU_LOG", "0 or 1", [](Settings& to, const std::string& v) { to.log = number(v, 0, 1); }},
    {"VGPU_CHECK", "racecheck, initcheck, memcheck, order, or several, separated by commas",
     [](Settings& to, const std::string& v) {
       to.checks = words(v, {"racecheck", "initcheck", "memcheck", "order"}, "unknown check");
     }},
    {"VGPU_CPU_FALLBACKS", "cublas, cudnn, both separated by a comma, or all", read_cpu_fallbacks},
    {"VGPU_MEMORY_TRACE", "LAUNCH:FILE, LAUNCH a number from 0", read_trace},
    {"VGPU_REPORT", "a file", [](Settings& to, const std::string& v) { to.report = v; }},
    {"VGPU_USED", "a file", [](Settings& to, const std::string& v) { to.used = v; }},
};

Settings read() {
  Settings made;
  for (const Variable& one : kVariables) {
    const char* value = std::getenv(one.name);
    if (!value || !*value) continue;
    try {
      one.read(made, value);
    } catch (const std::invalid_argument& error) {
      if (one.allowed) std::fprintf(stderr, "vgpu: %s: %s in '%s': expected %s\n", one.name, error.what(), value, one.allowed);
      else std::fprintf(stderr, "vgpu: %s: %s\n", one.name, error.what());  // which names the value and what is allowed
      std::exit(2);
    }
  }
  return made;
}

}  // namespace

const Settings& settings() {
  static const Settings all = read();
  return all;
}

}  // namespace vgpu
