// Rounding modes and comparisons for the floating-point families.
#pragma once
#include <string_view>
#include <utility>

#include "arithmetic/rounding.h"
#include "operands.h"

namespace vgpu::sm80 {

RoundingMode rounding_of(std::string_view name);  // of RM, RP, RZ; otherwise Nearest

// Returns the mask of lanes for which a test is true.  test: a bit each for less, equal, greater and unordered; values(lane)
// returns the two operands.
template <class F> uint32_t compare_floats(uint32_t test, F values) {
  const auto lanes_with = [&](auto holds) {
    return lanes_where([&](uint32_t l) {
      const auto [x, y] = values(l);
      return holds(x, y);
    });
  };
  switch (test & 7) {
    case 0: return test == 8 ? lanes_with([](auto x, auto y) { return x != x || y != y; }) : 0;
    case 7: return test == 7 ? lanes_with([](auto x, auto y) { return x == x && y == y; }) : kFullMask;
    case 1:
      return test == 1 ? lanes_with([](auto x, auto y) { return x < y; })
                       : lanes_with([](auto x, auto y) { return !(x >= y); });
    case 2:
      return test == 2 ? lanes_with([](auto x, auto y) { return x == y; })
                       : lanes_with([](auto x, auto y) { return !(x < y || x > y); });
    case 3:
      return test == 3 ? lanes_with([](auto x, auto y) { return x <= y; })
                       : lanes_with([](auto x, auto y) { return !(x > y); });
    case 4:
      return test == 4 ? lanes_with([](auto x, auto y) { return x > y; })
                       : lanes_with([](auto x, auto y) { return !(x <= y); });
    case 5:
      return test == 5 ? lanes_with([](auto x, auto y) { return x < y || x > y; })
                       : lanes_with([](auto x, auto y) { return x != y; });
    default:
      return test == 6 ? lanes_with([](auto x, auto y) { return x >= y; })
                       : lanes_with([](auto x, auto y) { return !(x < y); });
  }
}

// Writes both predicates of a comparison: the result and its inverse, each combined with the predicate that is read.  imm: the
// operation, from bit 4 on.
inline void write_comparison(WarpContext& warp, const Instruction& i, uint32_t result) {
  const uint32_t operation = static_cast<uint32_t>(i.imm >> 4), other = read_predicate(warp, i.e);
  write_predicate(warp, i.vector_registers[kFirstWritten], combine(operation, result, other));
  write_predicate(warp, i.vector_registers[kSecondWritten], combine(operation, ~result, other));
}

}  // namespace vgpu::sm80
