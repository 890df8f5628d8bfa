// Rounding as an instruction asks for it, for as long as the object lives.
#pragma once
#include <cfenv>
#include <cstdint>

namespace vgpu {

enum class RoundingMode : uint8_t { Nearest, Zero, Down, Up };

class ScopedRoundingMode {
 public:
  explicit ScopedRoundingMode(RoundingMode to) : before_(std::fegetround()) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(to)]);
  }
  ~ScopedRoundingMode() { std::fesetround(before_); }
  ScopedRoundingMode(const ScopedRoundingMode&) = delete;
  ScopedRoundingMode& operator=(const ScopedRoundingMode&) = delete;

 private:
  int before_;
};

}  // namespace vgpu
