// Rule 5, exact float sums: sums that are the same in every order.
//
// What it accepts: addends, the start value among them, that are multiples of 2^k and whose magnitudes together stay below
// 2^(k+24) (double: 53), with k so large that nothing is subnormal; and two addends to a zero.  Why that is sound: then no
// partial sum, in any order, has to be rounded; and a + b is b + a.  Both hold only for the values of this input.  Example: counts
// that are summed as floats.
#pragma once
#include <cstdint>

#include "core/memory_access.h"

namespace vgpu {

class ExactSum {
 public:
  // Adds the bits of a float or double; start: address of the value before the first one.  Returns false if an order may round.
  bool add(uint64_t bits, ValueType type, const uint8_t* start);
  uint16_t count() const { return count_; }

 private:
  void include(double value);

  bool from_zero_ = false;
  uint16_t count_ = 0;
  int16_t min_exponent_ = 0;  // all addends are multiples of 2^min_exponent_
  double magnitude_ = 0;  // an upper bound of the sum of their magnitudes
};

}  // namespace vgpu
