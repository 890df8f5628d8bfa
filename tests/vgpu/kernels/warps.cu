// Kernels of warps and blocks, for test_sass_warps.py.  warps.fatbin holds them as PTX and as machine code:
// nvcc -fatbin -gencode arch=compute_80,code=[sm_80,compute_80] -compress-mode=size -o warps.fatbin warps.cu
// Each has the parameters (unsigned* out, const unsigned* in, int n); a thread has a word of each.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cassert>
#include <cstdio>

typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL(name) extern "C" __global__ void name(u32* out, const u32* in, int n)
#define INDEX                                                                      \
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31; \
  (void)lane

__constant__ u32 primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ u32 counter = 3;

KERNEL(shuffles) {
  INDEX;
  const u32 x = in[i];
  u32 sum = __shfl_xor_sync(~0u, x, 5) + 3 * __shfl_up_sync(~0u, x, 2) + 5 * __shfl_down_sync(~0u, x, 7, 16);
  sum += 7 * __shfl_sync(~0u, x, x & 31) + 11 * __shfl_sync(~0u, x, lane + 1, 8);
  out[i] = sum;
}
KERNEL(votes) {
  INDEX;
  const u32 x = in[i];
  u32 made = __ballot_sync(~0u, x & 1) ^ __popc(__match_any_sync(~0u, x & 3));
  made += __any_sync(~0u, x == 77) + 2 * __all_sync(~0u, x > 3) + __reduce_add_sync(~0u, x & 0xff);
  made ^= __reduce_max_sync(~0u, (int)x) + __reduce_min_sync(~0u, x) + __reduce_xor_sync(~0u, x);
  out[i] = made + __activemask();
}
KERNEL(masks) {  // the lanes of a warp name four sets
  INDEX;
  const u32 x = in[i], mask = 0xffu << (lane & ~7);
  u32 made = __ballot_sync(mask, x & 1) ^ __popc(__match_any_sync(mask, x & 3));
  made += __any_sync(mask, (x & 7) == 7) + 2 * __all_sync(mask, (x & 31) > 1) + __reduce_add_sync(mask, x & 0xff);
  made ^= __reduce_max_sync(mask, (int)x) + __shfl_xor_sync(mask, x, 1);
  out[i] = made;
}
KERNEL(masked_ballot) {
  INDEX;
  out[i] = __ballot_sync(0xffu << (lane & ~7), in[i] & 1);
}
KERNEL(masked_sum) {
  INDEX;
  out[i] = __reduce_add_sync(0xffu << (lane & ~7), in[i] & 0xff);
}
KERNEL(tickets) {  // one lane adds for its warp, and passes the old value to the others
  INDEX;
  __shared__ u32 next, sum;
  if (threadIdx.x == 0) next = sum = 0;
  __syncthreads();
  const u32 ticket = atomicAdd(&next, 1);
  atomicAdd(&sum, ticket * ticket);
  __syncthreads();
  out[i] = sum;
}
KERNEL(grid_barrier) {  // behind it, each thread reads the word of the thread opposite to it
  INDEX;
  out[i] = in[i];
  cooperative_groups::this_grid().sync();
  const u32 opposite = out[n - 1 - i];
  cooperative_groups::this_grid().sync();
  out[i] = opposite;
}
KERNEL(last_half) {  // out: n halves
  (void)in;
  atomicAdd(reinterpret_cast<__half*>(out) + n - 1, __float2half(1));
}
KERNEL(parts_of_warps) {
  INDEX;
  const u32 x = in[i];
  u32 made = 0;
  if (lane < 11) made = __shfl_sync(0x7ff, x, (lane + 3) % 11);
  else if (x & 1) made = __popc(__activemask() & 0) + x;
  for (u32 k = 0; k < (x & 15); k++) {
    if ((x >> k & 1) && k > 9) break;
    made = made * 3 + k;
  }
  __syncwarp();
  out[i] = made + __ballot_sync(~0u, made & 1);
}
KERNEL(shared_scan) {
  __shared__ u32 held[256];
  INDEX;
  held[threadIdx.x] = in[i];
  __syncthreads();
  for (u32 step = 1; step < blockDim.x; step *= 2) {
    const u32 other = threadIdx.x >= step ? held[threadIdx.x - step] : 0;
    __syncthreads();
    held[threadIdx.x] += other;
    __syncthreads();
  }
  out[i] = held[threadIdx.x] + held[blockDim.x - 1 - threadIdx.x];
}
KERNEL(dynamic_shared) {
  extern __shared__ u32 held[];
  __shared__ unsigned char narrow[64];
  INDEX;
  held[threadIdx.x] = in[i];
  narrow[threadIdx.x & 63] = (unsigned char)threadIdx.x;
  __syncthreads();
  out[i] = held[blockDim.x - 1 - threadIdx.x] + (narrow[(threadIdx.x + 1) & 63] & 0x3f);
}
KERNEL(block_votes) {
  INDEX;
  const u32 x = in[i];
  u32 made = __syncthreads_count(x & 1);
  made = made * 2 + (__syncthreads_and(x != 0x55) != 0);
  made = made * 2 + (__syncthreads_or(x == 0x56) != 0);
  out[i] = made;
}
KERNEL(integer_atomics) {
  INDEX;
  const u32 x = in[i];
  __shared__ u32 cells[16];
  if (threadIdx.x < 16) cells[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&cells[x & 7], x);
  atomicMax(&cells[8 + ((x >> 3) & 7)], x & 0xffff);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(out + threadIdx.x, (cells[threadIdx.x] & 0xff) + cells[threadIdx.x + 8]);
  atomicMin(out + 8, x), atomicMax((int*)out + 9, (int)x), atomicOr(out + 10, x & 0xf0f), atomicAnd(out + 11, x | 0xff);
  atomicXor(out + 12, x), atomicAdd((u64*)(out + 16), (u64)x << 20), atomicInc(out + 13, 100), atomicDec(out + 15, 77), atomicAdd(out + 14, 1);
  atomicAdd(&counter, 0);
}
KERNEL(float_atomics) {
  INDEX;
  const float x = (float)(int)(in[i] & 0xffff) * 0.37f;
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x);
  atomicAdd((float*)out + (in[i] & 3), x);
  atomicAdd((double*)(out + 8), (double)x * 1e-3);
  atomicAdd((__half2*)(out + 12), __floats2half2_rn(x * 1e-4f, 1));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd((float*)out + 4, sum);
}
KERNEL(swaps) {
  INDEX;
  u32 old = out[0], seen;
  do seen = old, old = atomicCAS(out, seen, seen + (in[i] & 7));
  while (old != seen);
  __shared__ u64 wide;
  if (threadIdx.x == 0) wide = 0;
  __syncthreads();
  u64 before = wide, now;
  do now = before, before = atomicCAS(&wide, now, now + in[i]);
  while (before != now);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd((u64*)(out + 2), wide);
}
KERNEL(halves) {
  INDEX;
  const __half2 x = *(const __half2*)(in + i), y = __floats2half2_rn(i * 0.25f, -1.5f);
  const __half2 sum = __hadd2(x, y), product = __hmul2(x, sum), fused = __hfma2(x, y, product);
  u32 made = __hgt(__low2half(x), __high2half(fused)) ? *(const u32*)&fused : *(const u32*)&product;
  made ^= (u32)__half2uint_rz(__low2half(__h2div(__habs2(y), __float2half2_rn(0.5f))));
  out[i] = made;
}
KERNEL(bfloats) {
  INDEX;
  const float x = (float)(int)in[i] * 1e-6f;
  const __nv_bfloat162 a = __floats2bfloat162_rn(x, -x * 0.3f), b = __hfma2(a, a, a);
  out[i] = *(const u32*)&b;
}
static __device__ __noinline__ u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL(recursion) {
  INDEX;
  out[i] = fibonacci(in[i] % 9);
}
typedef u32 (*Function)(u32);
static __device__ __noinline__ u32 twice(u32 x) { return 2 * x + counter; }
static __device__ __noinline__ u32 squared(u32 x) { return x * x; }
__device__ Function functions[2] = {twice, squared};
KERNEL(pointers) {
  INDEX;
  out[i] = functions[in[i] & 1](in[i]) + primes[in[i] & 7] + primes[3];
}
KERNEL(stack) {
  INDEX;
  u32 held[16];
  for (int k = 0; k < 16; k++) held[k] = in[i] * k;
  for (int k = 0; k < (int)(in[i] & 31); k++) held[(in[i] >> k) & 15] += held[k & 15];
  u32 made = 0;
  for (int k = 0; k < 16; k++) made = made * 31 + held[k];
  out[i] = made;
}
KERNEL(switches) {
  INDEX;
  u32 x = in[i];
  for (int k = 0; k < 6; k++) {
    switch (x % 9) {
      case 0: x += 17; break;
      case 1: x ^= x >> 3; break;
      case 2: x *= 5; break;
      case 3: x -= 1; break;
      case 4: x = ~x; break;
      case 5: x = x << 1 | 1; break;
      case 6: x = __brev(x); break;
      case 7: x = x / 3; break;
      default: x += in[(i + 1) % n]; break;
    }
  }
  out[i] = x;
}
KERNEL(tensor_cores) {
  using namespace nvcuda;
  __shared__ __align__(32) __half a[256], b[256];
  __shared__ __align__(32) float c[256];
  for (int k = (int)(threadIdx.x & 31); k < 256; k += 32) {
    a[k] = __float2half((float)(in[k] & 15) - 7), b[k] = __float2half((float)(in[k] >> 4 & 15) * 0.25f);
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.5f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int k = threadIdx.x & 31; k < 256; k += 32) out[k] = __float_as_uint(c[k]);
}
KERNEL(asynchronous_copies) {
  __shared__ __align__(16) u32 held[256];
  INDEX;
  const u32 place = (u32)__cvta_generic_to_shared(held + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(in + i));
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
  __syncthreads();
  out[i] = held[threadIdx.x ^ 1];
}
KERNEL(generic_pointers) {
  __shared__ u32 held[256];
  INDEX;
  u32 own[2] = {in[i], in[i] + 1};
  held[threadIdx.x] = in[i] * 2;
  __syncwarp();
  const u32* from = in[i] % 3 == 0 ? held + (threadIdx.x ^ 1) : in[i] % 3 == 1 ? in + i : own + (in[i] & 1);
  out[i] = *(volatile const u32*)from;
}
KERNEL(named_barriers) {  // half of the block produces, and the other half consumes
  INDEX;
  __shared__ u32 buffer[64];
  const int t = threadIdx.x, all = n / 4, half = n / 8;  // n is 512
  u32 sum = 0;
  for (int k = 0; k < 4; k++) {
    if (t < 64) {
      buffer[t] = in[i] * (k + 1);
      asm volatile("bar.arrive 1, 128;" ::: "memory");
      asm volatile("bar.sync %0, %1;" ::"r"(2 + k), "r"(all) : "memory");
    } else {
      u32 count;
      asm volatile("bar.sync 1, %0;" ::"r"(all) : "memory");
      sum += buffer[t ^ 65] * (3 * k + 1);
      asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 0x7fffffff; bar.red.popc.u32 %0, 8, %2, p; }"
                   : "=r"(count) : "r"(sum), "r"(half) : "memory");
      sum += count;
      asm volatile("bar.arrive %0, 128;" ::"r"(2 + k) : "memory");
    }
  }
  asm volatile("bar.sync 9;" ::: "memory");
  out[i] = sum + (t < 64 ? buffer[t] : 0);
}
KERNEL(special_registers) {
  INDEX;
  u32 smid, warpid, smids, dynamic, total;
  asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%warpid;" : "=r"(smid), "=r"(warpid));
  asm volatile("mov.u32 %0, %%nsmid; mov.u32 %1, %%dynamic_smem_size; mov.u32 %2, %%total_smem_size;"
               : "=r"(smids), "=r"(dynamic), "=r"(total));
  out[i] = (smid < smids) + 2 * (warpid == threadIdx.x / 32) + 4 * dynamic + 4096 * smids + 65536 * total;
}
KERNEL(trap_at_7) {
  INDEX;
  if (in[i] == 7) __trap();
  out[i] = 1;
}
KERNEL(beyond) { out[n] = in[0]; }
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

// direct_calls.cubin holds `printed` and `asserted` as separate compilation links them: relocations in the code name what they
// call and their texts.  nvcc -ptx -arch=compute_80 warps.cu && sed -i 's/^.version .*/.version 8.4/' warps.ptx, then
// ptxas -arch=sm_80 -c -o warps.o warps.ptx of CUDA 12.4 and
// nvlink -arch=sm_80 --kernels-used=printed,asserted -o direct_calls.cubin warps.o.
