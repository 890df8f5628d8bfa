// The error of an image of GPU code that cannot be loaded.
#pragma once
#include "core/error.h"

namespace vgpu {

// The image is not a container, PTX or machine code, or it is damaged.
struct InvalidImage : Unsupported { using Unsupported::Unsupported; };

}  // namespace vgpu
