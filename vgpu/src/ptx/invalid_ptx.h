// What is thrown where a text is no PTX, and not only PTX that this device does not know.
#pragma once
#include "core/error.h"

namespace vgpu {

struct InvalidPtx : Unsupported { using Unsupported::Unsupported; };

}  // namespace vgpu
