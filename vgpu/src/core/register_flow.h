// The registers that each instruction of a function reads and writes, for analyses that follow values from register to register.
#pragma once
#include <cstdint>
#include <vector>

namespace vgpu {

enum class ValueFlow : uint8_t {
  Lanewise,  // each lane's results depend on nothing but the registers that the lane reads
  Shuffle,  // Lanewise, but one operand is another lane's (Observer::on_shuffle); a register may name the lanes that take part
  // An Instruction i that loads or stores i.count bytes of the lane's own memory, at an address that depends on nothing but the
  // register i.a and i.imm.
  LocalLoad,
  LocalStore,
  Store,  // stores registers to memory that other threads can access, or to the lane's own memory by a generic address
  Other,  // other memory, control flow, votes: a value that is read may go anywhere
};

inline bool is_local(ValueFlow flow) { return flow == ValueFlow::LocalLoad || flow == ValueFlow::LocalStore; }

// Registers are offsets in the frame, of a register or of a predicate; a value in several registers is listed with each, and one of
// 8 bytes in one register with that register twice.  Registers that never hold a lane's own values, such as constants, are left out.
struct RegisterFlow {
  ValueFlow flow = ValueFlow::Other;
  // All that it may read, except its guard; of a store: its address, then the value; of a shuffle: the mask of the lanes that take
  // part, then its other operands.
  std::vector<uint32_t> reads;
  uint32_t passed_reads = 0;  // of a store or a shuffle: how many of the last reads are the value, or the other operands
  std::vector<uint32_t> writes;  // if Lanewise: all that it writes; else maybe not all, but no others
};

// One RegisterFlow for each instruction of a function, in order, in less memory.
class RegisterFlows {
 public:
  bool empty() const { return entries_.empty(); }
  void append(const RegisterFlow& flow) {
    entries_.push_back({static_cast<uint32_t>(registers_.size()), static_cast<uint16_t>(flow.reads.size()),
                        static_cast<uint16_t>(flow.writes.size()), static_cast<uint8_t>(flow.passed_reads), flow.flow});
    registers_.insert(registers_.end(), flow.reads.begin(), flow.reads.end());
    registers_.insert(registers_.end(), flow.writes.begin(), flow.writes.end());
  }
  ValueFlow flow(size_t instruction) const { return entries_[instruction].flow; }
  template <class F> void for_each_read(size_t instruction, F f) const {
    const Entry& entry = entries_[instruction];
    for (uint32_t k = 0; k < entry.reads; k++) f(registers_[entry.first + k]);
  }
  // Calls f for the registers of a store's address, or of a shuffle's mask.
  template <class F> void for_each_address_read(size_t instruction, F f) const {
    const Entry& entry = entries_[instruction];
    for (uint32_t k = 0; k + entry.passed_reads < entry.reads; k++) f(registers_[entry.first + k]);
  }
  uint32_t writes(size_t instruction) const { return entries_[instruction].writes; }
  uint32_t write(size_t instruction, uint32_t k) const {
    const Entry& entry = entries_[instruction];
    return registers_[entry.first + entry.reads + k];
  }
  template <class F> void for_each_write(size_t instruction, F f) const {
    for (uint32_t k = 0; k < writes(instruction); k++) f(write(instruction, k));
  }

 private:
  struct Entry {
    uint32_t first;  // in registers_: those that it reads, behind them those that it writes
    uint16_t reads, writes;
    uint8_t passed_reads;
    ValueFlow flow;
  };
  std::vector<Entry> entries_;
  std::vector<uint32_t> registers_;
};

}  // namespace vgpu
