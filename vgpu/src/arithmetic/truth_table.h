// Logic of three operands, given by a truth table (PTX's lop3, LOP3 of machine code).
#pragma once
#include <cstdint>

namespace vgpu {

// Bit 4a + 2b + c of the table is the result, for each bit of the operands.
inline uint32_t apply_truth_table(uint32_t table, uint32_t a, uint32_t b, uint32_t c) {
  const auto entry = [=](uint32_t k) { return 0u - (table >> k & 1); };
  const auto select_by_c = [=](uint32_t k) { return (entry(k) & ~c) | (entry(k + 1) & c); };
  const auto select_by_b = [=](uint32_t k) { return (select_by_c(k) & ~b) | (select_by_c(k + 2) & b); };
  return (select_by_b(0) & ~a) | (select_by_b(4) & a);
}

}  // namespace vgpu
