// Products of matrices by wmma, and ldmatrix and movmatrix, for test_fragments.py.  fragments.fatbin holds them as PTX and as machine
// code: nvcc -fatbin -gencode arch=compute_80,code=[sm_80,compute_80] -compress-mode=size -o fragments.fatbin fragments.cu
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
template <int M, int N, int K, class T, class S, class LA, class LB> __device__ void product(const T* a, const T* b, S* c, int lda, int ldb) {
  fragment<matrix_a, M, N, K, T, LA> fa; fragment<matrix_b, M, N, K, T, LB> fb; fragment<accumulator, M, N, K, S> fc;
  load_matrix_sync(fa, a, lda); load_matrix_sync(fb, b, ldb); load_matrix_sync(fc, c, N, mem_row_major);
  mma_sync(fc, fa, fb, fc);
  for (int k = 0; k < fc.num_elements; k++) fc.x[k] = fc.x[k] + fc.x[k];
  store_matrix_sync(c, fc, N, mem_row_major);
}
template <int M, int N, int K, class S, class LA, class LB> __device__ void tf(const float* a, const float* b, S* c, int lda, int ldb) {
  fragment<matrix_a, M, N, K, precision::tf32, LA> fa; fragment<matrix_b, M, N, K, precision::tf32, LB> fb; fragment<accumulator, M, N, K, S> fc;
  load_matrix_sync(fa, a, lda); load_matrix_sync(fb, b, ldb); fill_fragment(fc, 0.0f);
  for (int k = 0; k < fa.num_elements; k++) fa.x[k] = __float_to_tf32(fa.x[k]);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, M, mem_col_major);
}
#define K(name, M, N, T, S, LA, LB, lda, ldb) extern "C" __global__ void name(const T* a, const T* b, S* c) { product<M, N, 16, T, S, LA, LB>(a, b, c, lda, ldb); }
K(f16_f32, 16, 16, half, float, row_major, col_major, 16, 24)
K(f16_f16, 16, 16, half, half, col_major, row_major, 32, 16)
K(f16_8, 8, 32, half, float, row_major, row_major, 16, 32)
K(f16_32, 32, 8, half, half, col_major, col_major, 32, 16)
K(bf16, 16, 16, __nv_bfloat16, float, row_major, row_major, 16, 16)
K(bf16_8, 8, 32, __nv_bfloat16, float, col_major, col_major, 8, 16)
K(bf16_32, 32, 8, __nv_bfloat16, float, row_major, col_major, 16, 16)
K(s8, 16, 16, signed char, int, row_major, col_major, 16, 16)
K(u8, 8, 32, unsigned char, int, col_major, row_major, 16, 32)
K(u8_32, 32, 8, unsigned char, int, row_major, col_major, 16, 16)
extern "C" __global__ void tf32(const float* a, const float* b, float* c) { tf<16, 16, 8, float, row_major, row_major>(a, b, c, 8, 16); }
extern "C" __global__ void in_shared(const half* a, const half* b, float* c) {
  __shared__ half sa[512], sb[512]; __shared__ float sc[256];
  for (int k = threadIdx.x; k < 512; k += 32) sa[k] = a[k], sb[k] = b[k], k < 256 ? sc[k] = c[k] : 0;
  __syncwarp();
  product<16, 16, 16, half, float, row_major, col_major>(sa, sb, sc, 16, 16);
  __syncwarp();
  for (int k = threadIdx.x; k < 256; k += 32) c[k] = sc[k];
}
extern "C" __global__ void matrices(const unsigned* a, const unsigned* b, unsigned* c) {
  __shared__ unsigned s[256];
  for (int k = threadIdx.x; k < 256; k += 32) s[k] = a[k];
  __syncwarp();
  unsigned p = __cvta_generic_to_shared(s + threadIdx.x * 4), r[4], t[4], u, v[2], x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(t[0]), "=r"(t[1]), "=r"(t[2]), "=r"(t[3]) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1+16];" : "=r"(u) : "r"(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(__cvta_generic_to_shared(s + threadIdx.x * 4)));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(x) : "r"(a[threadIdx.x]));
  c[352 + threadIdx.x] = x;
  for (int k = 0; k < 4; k++) c[threadIdx.x * 11 + k] = r[k], c[threadIdx.x * 11 + 4 + k] = t[k];
  c[threadIdx.x * 11 + 8] = u, c[threadIdx.x * 11 + 9] = v[0], c[threadIdx.x * 11 + 10] = v[1];
}
