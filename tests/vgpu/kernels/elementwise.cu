// Elementwise functions of two operands, for test_sass_elementwise.py.  elementwise.fatbin holds them as PTX and as machine code:
// nvcc -fatbin -gencode arch=compute_80,code=[sm_80,compute_80] -compress-mode=size -o elementwise.fatbin elementwise.cu
#define BINARY(name, type, out, expression)                                                        \
  extern "C" __global__ void name(const type* a, const type* b, out* c, int n) {                   \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                           \
    if (i >= n) return;                                                                            \
    const type x = a[i], y = b[i];                                                                 \
    c[i] = (expression);                                                                           \
  }
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long s64;

BINARY(add_u32, u32, u32, x + y)
BINARY(sub_s32, int, int, x - y)
BINARY(mul_u32, u32, u32, x * y)
BINARY(div_u32, u32, u32, y ? x / y : 7)
BINARY(mod_s32, int, int, y ? (x == (int)0x80000000 && y == -1 ? 0 : x % y) : 7)
BINARY(min_s32, int, int, min(x, y))
BINARY(max_u32, u32, u32, max(x, y))
BINARY(shl_u32, u32, u32, y < 32 ? x << y : 1)
BINARY(shr_s32, int, int, x >> (y & 31))
BINARY(logic_u32, u32, u32, (x & ~y) ^ (y | 0x1234) ^ (x >> 3))
BINARY(mulhi_s32, int, int, __mulhi(x, y))
BINARY(mulhi_u32, u32, u32, __umulhi(x, y))
BINARY(bits_u32, u32, u32, __popc(x) + 64 * __clz(y) + 4096 * __ffs(x) + (__brev(x) & 0xff00000))
BINARY(perm_u32, u32, u32, __byte_perm(x, y, x))
BINARY(sad_s32, int, u32, __usad(x, y, 3u))
BINARY(dp4a_s32, int, int, __dp4a(x, y, x))
BINARY(compare_s32, int, int, (x < y) + 2 * (x <= y) + 4 * ((u32)x < (u32)y) + 8 * (x == y))
BINARY(add_u64, u64, u64, x + y)
BINARY(sub_u64, u64, u64, x - y)
BINARY(mul_u64, u64, u64, x * y)
BINARY(div_u64, u64, u64, y ? x / y : 7)
BINARY(mod_s64, s64, s64, y ? (x == (s64)0x8000000000000000ull && y == -1 ? 0 : x % y) : 7)
BINARY(shift_u64, u64, u64, (x << (y & 63)) ^ (x >> (y & 31)))
BINARY(shift_s64, s64, s64, x >> (y & 63))
BINARY(mulhi_u64, u64, u64, __umul64hi(x, y))
BINARY(compare_s64, s64, int, (x < y) + 2 * (x <= y) + 4 * ((u64)x < (u64)y) + 8 * (x == y))
BINARY(min_s64, s64, s64, min(x, y))
BINARY(narrow_u32, u32, u32, (u32)(int)(signed char)x + (u32)(short)y * 3 + (x & 0xffff))
BINARY(add_f32, float, float, __fadd_rn(x, y))
BINARY(sub_f32, float, float, __fsub_rn(x, y))
BINARY(mul_f32, float, float, __fmul_rn(x, y))
BINARY(fma_f32, float, float, __fmaf_rn(x, y, x))
BINARY(div_f32, float, float, __fdiv_rn(x, y))
BINARY(sqrt_f32, float, float, __fsqrt_rn(fabsf(x)) + 0 * y)
BINARY(add_down_f32, float, float, __fadd_rd(x, y))
BINARY(mul_up_f32, float, float, __fmul_ru(x, y))
BINARY(min_f32, float, float, fminf(x, y))
BINARY(max_f32, float, float, fmaxf(x, y))
BINARY(compare_f32, float, int, (x < y) + 2 * (x >= y) + 4 * (x == y) + 8 * (x != y) + 16 * isnan(x))
BINARY(floor_f32, float, float, floorf(x) + 0 * y)
BINARY(to_s32, float, int, (int)x)
BINARY(to_u64, float, u64, (u64)x)
BINARY(select_f32, float, float, x > y ? x : -fabsf(y))
BINARY(from_s32, int, float, (float)x + (float)(signed char)y)
BINARY(from_u64, u64, float, (float)x)
BINARY(add_f64, double, double, __dadd_rn(x, y))
BINARY(mul_f64, double, double, __dmul_rn(x, y))
BINARY(fma_f64, double, double, __fma_rn(x, y, y))
BINARY(div_f64, double, double, __ddiv_rn(x, y))
BINARY(sqrt_f64, double, double, __dsqrt_rn(fabs(x)))
BINARY(max_f64, double, double, fmax(x, y))
BINARY(compare_f64, double, int, (x < y) + 2 * (x >= y) + 4 * (x == y))
BINARY(round_f64, double, double, rint(x))
BINARY(to_s64, double, s64, (s64)x)
BINARY(to_f32, double, float, (float)x)
BINARY(from_s64, s64, double, (double)x)
