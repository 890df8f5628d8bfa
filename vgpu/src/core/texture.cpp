// Texture fetches: addressing, filtering and conversion of texels.
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

bool Texels::alive(const DeviceMemory& memory) const {
  if (!array) return memory.covers(at, bytes);
  const Allocation found = memory.find(at);
  return found.end && found.number == allocation;
}

}  // namespace vgpu
