// The error of text that is not valid PTX (Unsupported: valid PTX that this device does not support).
#pragma once
#include "core/error.h"

namespace vgpu {

struct InvalidPtx : Unsupported { using Unsupported::Unsupported; };

}  // namespace vgpu
