// Containers of GPU code ("fatbins"), as libraries carry them and drivers are handed them.
#pragma once
#include <string>

#include "core/error.h"

namespace vgpu {

// The image is neither a container, nor PTX, nor machine code, or it is damaged.
struct InvalidImage : Unsupported { using Unsupported::Unsupported; };

// There is code, but none that this device reads: what it holds may be named, and is refused when it is to run.
struct NoPtx : Unsupported { using Unsupported::Unsupported; };

struct Ptx {
  std::string text;
  int arch = 0;  // of the PTX: 70 for compute_70
};

// The PTX that a GPU of compute capability `arch` (70 for 7.0) would compile: the newest not above it.  The image may be a
// container, the PTX itself, or machine code.  NoPtx: none for this device; Unsupported: a damaged container; both with the reason.
Ptx select_ptx(const void* image, int arch);

// The newest architecture that a container has PTX for; 0: none, or no container.
int newest_ptx_arch(const void* image);

// The architecture that PTX itself names as its target; 0: it is a container, or names none.
int target_arch(const void* image);

}  // namespace vgpu
