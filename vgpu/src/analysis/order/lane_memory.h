// Which bytes of the own memory of a warp's lanes (local variables, spilled registers) have a value that is specified.
#pragma once
#include <cstdint>
#include <vector>

#include "core/warp_context.h"

namespace vgpu {

enum class ByteState : uint8_t { Unwritten, Written, Unspecified };  // Unspecified: written with an unspecified value

class LaneMemory {
 public:
  // Begins the call of a function, whose local variables nothing has written yet.
  void begin_call(const WarpContext& warp);
  // Returns the states of the bytes from `address` on; nullptr: it is not the address of a local variable.
  ByteState* find(const WarpContext& warp, const uint8_t* address);

 private:
  struct Frame {
    const uint8_t* begin;
    std::vector<ByteState> states;
  };
  ByteState* find_known(const uint8_t* address);
  void add(const PerLaneMemory& memory);

  std::vector<Frame> frames_;  // few
};

}  // namespace vgpu
