// A kernel with line tables, for test_source_lines.py.  lines.fatbin holds it as PTX and as machine code, compiled in /src:
// nvcc -fatbin -lineinfo -gencode arch=compute_80,code=[sm_80,compute_80] -compress-mode=none -o lines.fatbin lines.cu
__device__ void add(float* sum, float value) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(sum), "f"(value) : "memory");
}
__device__ __noinline__ void store(float* words, int i) {
  words[i / 2] = i;
}
extern "C" __global__ void lines(float* words) {
  add(words + 100, words[threadIdx.x] + 0.1f * threadIdx.x);
  store(words + 200, threadIdx.x);
}
