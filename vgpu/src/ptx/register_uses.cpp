// Finds results that no other instruction of a function reads.
#include "register_uses.h"

#include <algorithm>
#include <array>

namespace vgpu {
namespace {

// Counts how often each register is named.  Operands that are not registers only increase counts.
class RegisterCounts {
 public:
  explicit RegisterCounts(const DecodedFunction& function) : counts_(function.register_bytes / kGranule + 1) {
    for (const Instruction& i : function.code) {
      for (uint32_t operand : {i.d, i.a, i.b, i.c, i.e}) add(operand);
      for (uint32_t operand : i.vector_registers) add(operand);
      if (i.guard >= 0) add(static_cast<uint32_t>(i.guard));
    }
  }
  bool is_named_once(uint32_t offset) const {
    return offset >= kSpecialBytes && offset / kGranule < counts_.size() && counts_[offset / kGranule] == 1;
  }

 private:
  static constexpr uint32_t kGranule = 4;  // bytes; offsets of registers are multiples of it
  void add(uint32_t offset) {
    if (offset / kGranule < counts_.size()) counts_[offset / kGranule]++;
  }
  std::vector<uint32_t> counts_;
};

bool is_result_unused(const Instruction& i, const RegisterCounts& counts) {
  if (i.schedule_source == ScheduleSource::Heap || i.schedule_source == ScheduleSource::Print)
    return false;  // d is not a register
  if (i.d) return counts.is_named_once(i.d);
  return i.vector_registers[0] && std::all_of(i.vector_registers, i.vector_registers + i.count,
                                              [&](uint32_t offset) { return counts.is_named_once(offset); });
}

bool reads_processor(const Instruction& i) {
  constexpr std::array<uint32_t, 5> kProcessorRegisters = {kWarpid, kNwarpid, kSmid, kNsmid, kGridid};
  return std::any_of(kProcessorRegisters.begin(), kProcessorRegisters.end(), [&](uint32_t number) {
    const uint32_t offset = special_offset(number);
    return i.a == offset || i.b == offset || i.c == offset || i.e == offset;
  });
}

}  // namespace

void mark_register_uses(DecodedFunction& function) {
  const RegisterCounts counts(function);
  for (Instruction& i : function.code) {
    i.result_unused = is_result_unused(i, counts);
    if (i.old_value == OldValue::Used && i.result_unused) i.old_value = OldValue::Unused;
    if (reads_processor(i)) i.schedule_source = ScheduleSource::Processor;
  }
}

}  // namespace vgpu
