// Rounding modes of instructions, and their use in a scope.
#pragma once
#include <cfenv>
#include <cstdint>

namespace vgpu {

enum class RoundingMode : uint8_t { Nearest, Zero, Down, Up };

// Compilers assume rounding to nearest, since they vectorize nothing else.  Therefore operands must be read from memory, and
// results written to memory that other functions see (or be volatile), while the scope lasts: no compiler moves these accesses
// beyond the calls that set the mode.
class ScopedRoundingMode {
 public:
  explicit ScopedRoundingMode(RoundingMode mode) : previous_(std::fegetround()) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(mode)]);
  }
  ~ScopedRoundingMode() { std::fesetround(previous_); }
  ScopedRoundingMode(const ScopedRoundingMode&) = delete;
  ScopedRoundingMode& operator=(const ScopedRoundingMode&) = delete;

 private:
  int previous_;
};

// Converts in the processor's rounding mode, which the volatile keeps compilers from assuming.  Processors convert signed integers
// only: what compilers emit for unsigned ones is right to nearest alone.
template <class F> F to_rounded(int64_t value) {
  volatile int64_t source = value;
  return static_cast<F>(source);
}
template <class F> F to_rounded(uint64_t value) {
  if (value <= INT64_MAX) return to_rounded<F>(static_cast<int64_t>(value));
  return 2 * to_rounded<F>(static_cast<int64_t>(value >> 1 | (value & 1)));  // the lost bit counts in rounding
}

}  // namespace vgpu
