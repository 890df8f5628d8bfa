// The error of text that is not valid PTX. It is an Unsupported, as callers refuse both in the same way; they differ in the
// status that the driver returns.
#pragma once
#include "core/error.h"

namespace vgpu {

struct InvalidPtx : Unsupported { using Unsupported::Unsupported; };

}  // namespace vgpu
