// Which registers an instruction of machine code reads and writes, and how values pass through it (core/register_flow.h).
#pragma once
#include <string>
#include <vector>

#include "core/instruction_set.h"
#include "decoded.h"

namespace vgpu::sm80 {

// Registers R0, R1 and so on, and predicates P0 to P6.  Uniform registers are left out: nothing but ValueFlow::Other moves a
// lane's value to one.
struct RegisterUse {
  ValueFlow flow = ValueFlow::Other;
  std::vector<uint32_t> reads, writes;
  uint32_t stored = 0;  // of a store: how many of the last reads are the value, as RegisterFlow::passed_reads
  std::vector<uint32_t> predicate_reads, predicate_writes;  // without the guard
};

RegisterUse register_use(const Decoded& decoded);

// As text: "R2 P0 < R4 R5 P1", the registers that are written before those that are read; behind "= " if the flow is
// Lanewise or Shuffle.
std::string to_text(const RegisterUse& use);

}  // namespace vgpu::sm80
