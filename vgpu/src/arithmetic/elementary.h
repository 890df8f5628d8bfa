// exp2, log2, tanh, exp and log in double precision, with errors of about 1e-15: for the CPU fallbacks.
//
// The C library's functions are not used, since their last bits differ between versions and processors, but the same schedule must
// give the same bytes everywhere.  These use only operations that IEEE 754 rounds correctly: + - * / and fma.
#pragma once
#include <cmath>
#include <limits>

namespace vgpu {

constexpr double kLog2OfE = 1.44269504088896341;

// Returns the sum of c[k] x^k.
template <int n> double polynomial(const double (&c)[n], double x) {
  double sum = c[n - 1];
  for (int k = n - 2; k >= 0; k--) sum = std::fma(sum, x, c[k]);
  return sum;
}

inline double exp2_of(double x) {
  if (!(x > -1100)) return x != x ? x : 0;
  if (x > 1100) return std::numeric_limits<double>::infinity();
  static constexpr double kTaylor[] = {
      1,         1,          1 / 2.,      1 / 6.,       1 / 24.,       1 / 120.,       1 / 720.,
      1 / 5040., 1 / 40320., 1 / 362880., 1 / 3628800., 1 / 39916800., 1 / 479001600., 1 / 6227020800.};
  double integer = std::floor(x + 0.5);
  return std::ldexp(polynomial(kTaylor, (x - integer) * 0.693147180559945309), int(integer));
}

inline double log2_of(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  static constexpr double kOdd[] = {1, 1 / 3., 1 / 5., 1 / 7., 1 / 9., 1 / 11., 1 / 13., 1 / 15., 1 / 17., 1 / 19., 1 / 21.};
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.707106781186547524) m *= 2, exponent--;
  double s = (m - 1) / (m + 1);  // log m = 2 (s + s^3/3 + s^5/5 + ...)
  return exponent + s * polynomial(kOdd, s * s) * (2 * kLog2OfE);
}

template <class T> T exp_of(T x) { return static_cast<T>(exp2_of(x * kLog2OfE)); }
template <class T> T log_of(T x) { return static_cast<T>(log2_of(x) / kLog2OfE); }

inline double sigmoid_of(double x) { return 1 / (1 + exp_of(-x)); }

inline double tanh_of(double x) {
  static constexpr double kOdd[] = {1, -1 / 3., 2 / 15., -17 / 315., 62 / 2835., -1382 / 155925., 21844 / 6081075.};
  if (std::fabs(x) < 0.125) return x * polynomial(kOdd, x * x);
  double power = exp2_of(2 * kLog2OfE * std::fabs(x));
  return std::copysign(1 - 2 / (power + 1), x);
}

}  // namespace vgpu
