// Rounding modes of instructions, and their use in a scope.
#pragma once
#include <cfenv>
#include <cstdint>

namespace vgpu {

enum class RoundingMode : uint8_t { Nearest, Zero, Down, Up };

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

}  // namespace vgpu
