// Rounding as an instruction asks for it, for as long as the object lives.
#pragma once
#include <cfenv>
#include <cstdint>

namespace vgpu {

enum class Round : uint8_t { Nearest, Zero, Down, Up };

class Rounding {
 public:
  explicit Rounding(Round to) : before_(std::fegetround()) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(to)]);
  }
  ~Rounding() { std::fesetround(before_); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

 private:
  int before_;
};

}  // namespace vgpu
