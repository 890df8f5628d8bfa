// Sizes of texel formats, and whether texels are still allocated.
#include "texture.h"

#include "memory.h"

namespace vgpu {

uint32_t bytes_of(Format format) {
  switch (format) {
    case Format::U8:
    case Format::S8: return 1;
    case Format::U16:
    case Format::S16:
    case Format::Half: return 2;
    case Format::U32:
    case Format::S32:
    case Format::Float: return 4;
  }
  return 0;
}

bool Texels::is_alive(const DeviceMemory& memory) const {
  if (!array) return memory.covers(at, bytes);
  const Allocation current = memory.find(at);
  return current.end && current.number == allocation;
}

}  // namespace vgpu
