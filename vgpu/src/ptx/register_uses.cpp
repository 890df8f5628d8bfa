// Finds results that no other instruction of a function reads.
#include "register_uses.h"

#include <algorithm>
#include <array>

namespace vgpu {
namespace {

// How often each register is named.  What an operand holds besides registers only adds to it.
class Names {
 public:
  explicit Names(const DecodedFunction& function) : counts_(function.register_bytes / kGranule + 1) {
    for (const Instruction& i : function.code) {
      for (uint32_t one : {i.d, i.a, i.b, i.c, i.e}) add(one);
      for (uint32_t one : i.vector_registers) add(one);
      if (i.guard >= 0) add(static_cast<uint32_t>(i.guard));
    }
  }
  bool once(uint32_t reg) const {
    return reg >= kSpecialBytes && reg / kGranule < counts_.size() && counts_[reg / kGranule] == 1;
  }

 private:
  static constexpr uint32_t kGranule = 4;
  void add(uint32_t reg) {
    if (reg / kGranule < counts_.size()) counts_[reg / kGranule]++;
  }
  std::vector<uint32_t> counts_;
};

bool result_unused(const Instruction& i, const Names& names) {
  if (i.source == ScheduleSource::Heap || i.source == ScheduleSource::Output) return false;  // d is no register
  if (i.d) return names.once(i.d);
  return i.vector_registers[0] &&
         std::all_of(i.vector_registers, i.vector_registers + i.count, [&](uint32_t one) { return names.once(one); });
}

bool reads_processor(const Instruction& i) {
  constexpr std::array<uint32_t, 5> kPlaces = {kWarpid, kNwarpid, kSmid, kNsmid, kGridid};
  return std::any_of(kPlaces.begin(), kPlaces.end(), [&](uint32_t one) {
    const uint32_t at = special_offset(one);
    return i.a == at || i.b == at || i.c == at || i.e == at;
  });
}

}  // namespace

void mark_register_uses(DecodedFunction& function) {
  const Names names(function);
  for (Instruction& i : function.code) {
    i.result_unused = result_unused(i, names);
    if (reads_processor(i)) i.source = ScheduleSource::Processor;
  }
}

}  // namespace vgpu
