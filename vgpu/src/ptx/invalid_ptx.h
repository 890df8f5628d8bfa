// The errors of text that is not valid PTX, or too new. They are Unsupported, as callers refuse all in the same way; they differ in
// the status that the driver returns.
#pragma once
#include "core/error.h"

namespace vgpu {

struct InvalidPtx : Unsupported { using Unsupported::Unsupported; };
// Text of a version of PTX that is newer than the driver.
struct UnsupportedPtxVersion : Unsupported { using Unsupported::Unsupported; };

}  // namespace vgpu
