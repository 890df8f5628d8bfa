// What ends the proof of one operation, and which rules carried it so far: as a line of JSON, or in words.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "phase.h"
#include "reason.h"

namespace vgpu {

class Findings {
 public:
  void clear() { reasons_.clear(), rules_ = 0; }
  bool empty() const { return reasons_.empty(); }
  void add(const char* reason, uint32_t line, uint32_t other_line);
  void add(Rule rule) { rules_ |= 1u << static_cast<uint32_t>(rule); }

  std::string json() const;                         // an object
  // On stderr, a line for each reason.  position: what their lines count.
  void print(const char* what, const char* position = "line") const;

 private:
  // The reason, the lines that meet (0: none), and how often.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> reasons_;
  uint32_t rules_ = 0;
};

}  // namespace vgpu
