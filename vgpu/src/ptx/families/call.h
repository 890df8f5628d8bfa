// Parameters and results that a function declares in registers; calls pass them in the parameter space like all others.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

void load_parameters(Decoder& d);                              // emitted at the function's beginning
void store_results(Decoder& d, const Instruction& returning);  // emitted before each `ret`, with its guard

}  // namespace vgpu
