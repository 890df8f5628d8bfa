// The reasons why one operation is not proved, and the rules that its proof has used, as JSON or as text.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "phase.h"
#include "unproved_reason.h"

namespace vgpu {

class Findings {
 public:
  void clear() { reasons_.clear(), rules_ = 0; }
  bool empty() const { return reasons_.empty(); }
  void add(const char* reason, uint32_t position, uint32_t other_position, uint64_t times = 1);
  void add(Rule rule) { rules_ |= 1u << static_cast<uint32_t>(rule); }

  std::string json() const;                         // a JSON object
  // Prints a line for each reason to stderr.  operation: the name of the kernel, or "copy", ....
  void print(const std::string& operation) const;

 private:
  // (reason, the two positions in the code (Instruction::position; 0: none)) to the number of times.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> reasons_;
  uint32_t rules_ = 0;
};

}  // namespace vgpu
