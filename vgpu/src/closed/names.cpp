// One function for each name that a framework asks of a closed library, and that has no file of its own.
#include "../driver/api.h"
#include "answers.h"

#define CALL(name) API int name(void** first) { return vgpu::answer(#name, first); }
#include "cublas.def"
#include "cudnn.def"
#include "cufft.def"
#include "curand.def"
#include "cusolver.def"
#include "cusparse.def"
#include "nccl.def"
