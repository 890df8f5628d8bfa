// What the families of floats share: roundings and comparisons.
#pragma once
#include <string_view>
#include <utility>

#include "arithmetic/rounding.h"
#include "operands.h"

namespace vgpu::sm80 {

RoundingMode rounding_of(std::string_view name);  // of RM, RP, RZ; nothing: to the nearest

// Where a test holds: a bit each for less, equal, greater and not comparable.  values(lane) gives the two operands.
template <class F> uint32_t compare_floats(uint32_t test, F values) {
  const auto where = [&](auto holds) {
    return lanes_where([&](uint32_t l) {
      const auto [x, y] = values(l);
      return holds(x, y);
    });
  };
  switch (test & 7) {
    case 0: return test == 8 ? where([](auto x, auto y) { return x != x || y != y; }) : 0;
    case 7: return test == 7 ? where([](auto x, auto y) { return x == x && y == y; }) : kFullMask;
    case 1: return test == 1 ? where([](auto x, auto y) { return x < y; }) : where([](auto x, auto y) { return !(x >= y); });
    case 2:
      return test == 2 ? where([](auto x, auto y) { return x == y; }) : where([](auto x, auto y) { return !(x < y || x > y); });
    case 3: return test == 3 ? where([](auto x, auto y) { return x <= y; }) : where([](auto x, auto y) { return !(x > y); });
    case 4: return test == 4 ? where([](auto x, auto y) { return x > y; }) : where([](auto x, auto y) { return !(x <= y); });
    case 5:
      return test == 5 ? where([](auto x, auto y) { return x < y || x > y; }) : where([](auto x, auto y) { return x != y; });
    default: return test == 6 ? where([](auto x, auto y) { return x >= y; }) : where([](auto x, auto y) { return !(x < y); });
  }
}

// Both predicates of a comparison: the result joined with the predicate that is read, and its opposite.  imm: the join, from
// bit 4 on.
inline void write_joined(WarpContext& warp, const Instruction& i, uint32_t holds) {
  const uint32_t how = static_cast<uint32_t>(i.imm >> 4), with = read_predicate(warp, i.e);
  write_predicate(warp, i.vector_registers[kFirstWritten], join(how, holds, with));
  write_predicate(warp, i.vector_registers[kSecondWritten], join(how, ~holds, with));
}

}  // namespace vgpu::sm80
