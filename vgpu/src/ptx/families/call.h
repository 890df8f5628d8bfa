// Parameters that a function declares in registers: they arrive and go in the parameter space, as all others do.
#pragma once
#include "ptx/decoder.h"

namespace vgpu {

void load_parameters(Decoder& d);                              // at the function's beginning
void store_results(Decoder& d, const Instruction& returning);  // before each `ret`, with its guard

}  // namespace vgpu
