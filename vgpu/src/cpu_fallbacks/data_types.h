// Numbers of the types that libraries know, in memory of the device.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "arithmetic/half.h"
#include "fallback.h"

namespace vgpu {

// library_types.h: cudaDataType_t.
enum class Number : int {
  Float = 0,
  Double = 1,
  Half = 2,
  Int8 = 3,
  Complex = 4,
  DoubleComplex = 5,
  Uint8 = 8,
  Int32 = 10,
  Bfloat = 14
};

template <class T> constexpr bool kIsComplex = false;
template <class T> constexpr bool kIsComplex<std::complex<T>> = true;

inline uint32_t size_of(Number type) {
  switch (type) {
    case Number::Float:
    case Number::Int32: return 4;
    case Number::Double:
    case Number::Complex: return 8;
    case Number::Half:
    case Number::Bfloat: return 2;
    case Number::Int8:
    case Number::Uint8: return 1;
    case Number::DoubleComplex: return 16;
  }
  throw NotStoodIn();
}

template <class S> const S& nth(const void* base, int64_t index) { return static_cast<const S*>(base)[index]; }

template <class T> T read_number(const void* base, Number type, int64_t index) {
  if constexpr (kIsComplex<T>) {
    if (type == Number::Complex) return T(nth<std::complex<float>>(base, index));
    if (type == Number::DoubleComplex) return T(nth<std::complex<double>>(base, index));
  }
  switch (type) {
    case Number::Float: return static_cast<T>(nth<float>(base, index));
    case Number::Double: return static_cast<T>(nth<double>(base, index));
    case Number::Half: return static_cast<T>(half_to_float(nth<uint16_t>(base, index)));
    case Number::Bfloat: return static_cast<T>(bfloat16_to_float(nth<uint16_t>(base, index)));
    case Number::Int8: return static_cast<T>(nth<int8_t>(base, index));
    case Number::Uint8: return static_cast<T>(nth<uint8_t>(base, index));
    case Number::Int32: return static_cast<T>(nth<int32_t>(base, index));
    default: throw NotStoodIn();
  }
}

template <class T> void write_number(void* base, Number type, int64_t index, T value) {
  if constexpr (kIsComplex<T>) {
    if (type == Number::Complex) static_cast<std::complex<float>*>(base)[index] = std::complex<float>(value);
    else if (type == Number::DoubleComplex) static_cast<std::complex<double>*>(base)[index] = std::complex<double>(value);
    else throw NotStoodIn();
  } else {
    switch (type) {
      case Number::Float: static_cast<float*>(base)[index] = static_cast<float>(value); return;
      case Number::Double: static_cast<double*>(base)[index] = static_cast<double>(value); return;
      case Number::Half: static_cast<uint16_t*>(base)[index] = to_half(static_cast<double>(value)); return;
      case Number::Bfloat: static_cast<uint16_t*>(base)[index] = to_bfloat16(static_cast<double>(value)); return;
      case Number::Int32: static_cast<int32_t*>(base)[index] = static_cast<int32_t>(value); return;
      default: throw NotStoodIn();
    }
  }
}

template <class T> struct Tag { using type = T; };

// f(Tag<T>()) with the T in which sums of such numbers are made.
template <class F> void in_sums_of(Number type, F f) {
  switch (type) {
    case Number::Half:
    case Number::Bfloat:
    case Number::Float: return f(Tag<float>());
    case Number::Double: return f(Tag<double>());
    case Number::Complex: return f(Tag<std::complex<float>>());
    case Number::DoubleComplex: return f(Tag<std::complex<double>>());
    case Number::Int32: return f(Tag<int32_t>());
    default: throw NotStoodIn();
  }
}

}  // namespace vgpu
