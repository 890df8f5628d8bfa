// Kernels that call functions of another file, which nvlink links as machine code, for test_sass_linked.py:
// nvcc -arch=sm_80 -rdc=true -lineinfo -cubin linked.cu && nvcc -arch=sm_80 -rdc=true -lineinfo -cubin linked_functions.cu
// nvlink -arch=sm_80 -o linked.cubin linked.cubin linked_functions.cubin
#include <cstdio>

#include "linked.h"

typedef float (*Function)(float);

__device__ float line(float x, int n);
__device__ float twice(float x);
__device__ int fibonacci(int n);
__device__ void add(float* sum, float x);
__device__ float read(const float* at);
extern __device__ float offsets[4];
__device__ Function initialized[2] = {twice, nullptr};
__device__ Function stored[2];
__device__ float half(float x) { return x / 2; }

extern "C" __global__ void direct(float* out) {
  const int i = threadIdx.x;
  out[i] = line(1.5f, i) + offsets[i & 3];
}
extern "C" __global__ void recursive(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x & 7); }
extern "C" __global__ void store(float*) { stored[0] = twice, stored[1] = half; }
extern "C" __global__ void through_pointers(float* out) {
  const int i = threadIdx.x;
  out[i] = stored[i & 1](float(i)) + initialized[0](1.f);
  if (i == 3) printf("%.1f\n", out[i]);
}
extern "C" __global__ void virtual_functions(float* out) {
  Square square;
  Disk disk;
  square.scale = 2, disk.scale = 3;
  Shape* shapes[2] = {&square, &disk};
  const int i = threadIdx.x;
  out[i] = shapes[i & 1]->area(float(i));
}
extern "C" __global__ void sum(float* out) { add(out, 1.f / (threadIdx.x + 1)); }
extern "C" __global__ void fault(float* out) { out[threadIdx.x] = read(nullptr); }
