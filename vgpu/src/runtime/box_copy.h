// The parameters of the runtime's copies of boxes, and their conversion to the driver's.
#pragma once
#include <cstddef>

#include "registration.h"

namespace vgpu {

struct Extents { size_t width, height, depth; };  // cudaExtent
struct Position { size_t x, y, z; };  // cudaPos
struct Pitched {  // cudaPitchedPtr
  void* at;
  size_t pitch, width, height;
};
struct BoxParameters {  // cudaMemcpy3DParms
  void* from_array;
  Position from;
  Pitched from_memory;
  void* to_array;
  Position to;
  Pitched to_memory;
  Extents size;
  int kind;  // cudaMemcpyKind; 4: cudaMemcpyDefault
};

// Each side is an array or memory; if one is an array, offsets and width are in its elements, otherwise in bytes.  Returns CUDA's
// result.
int to_driver(const BoxParameters* parameters, Memcpy3DParams& params);
// Describes a copy of rows of memory.  width and pitches in bytes.
Memcpy3DParams make_box_copy(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height);

}  // namespace vgpu
