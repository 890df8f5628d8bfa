// Kernels of warps.cu, linked as separate compilation links them: relocations in the code name what it calls and its texts.
// direct_calls.cubin is made with the ptxas of CUDA 12.4, by
// nvcc -ptx -arch=compute_80 direct_calls.cu && sed -i 's/^.version .*/.version 8.4/' direct_calls.ptx
// ptxas -arch=sm_80 -c -o direct_calls.o direct_calls.ptx && nvlink -arch=sm_80 -o direct_calls.cubin direct_calls.o
#include <cassert>
#include <cstdio>

typedef unsigned u32;
#define KERNEL(name) extern "C" __global__ void name(u32* out, const u32* in, int n)
#define INDEX const int i = blockIdx.x * blockDim.x + threadIdx.x

KERNEL(printed) {
  INDEX;
  if (in[i] < 3) printf("%d says %.2f, %s %llu\n", i, in[i] * 0.5, in[i] ? "some" : "none", 1ull << 40);
  out[i] = 1;
}
KERNEL(asserted) {
  INDEX;
  assert(in[i] != 5);
  out[i] = 1;
}
