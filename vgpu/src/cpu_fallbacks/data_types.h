// Loads and stores numbers of the vendor libraries' data types in device memory.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "arithmetic/half.h"
#include "fallback.h"

namespace vgpu {

// library_types.h: cudaDataType_t.
enum class DataType : int {
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

inline uint32_t size_of(DataType type) {
  switch (type) {
    case DataType::Float:
    case DataType::Int32: return 4;
    case DataType::Double:
    case DataType::Complex: return 8;
    case DataType::Half:
    case DataType::Bfloat: return 2;
    case DataType::Int8:
    case DataType::Uint8: return 1;
    case DataType::DoubleComplex: return 16;
  }
  throw FallbackUnsupported();
}

template <class S> const S& element_at(const void* base, int64_t index) { return static_cast<const S*>(base)[index]; }

template <class T> T load_element(const void* base, DataType type, int64_t index) {
  if constexpr (kIsComplex<T>) {
    if (type == DataType::Complex) return T(element_at<std::complex<float>>(base, index));
    if (type == DataType::DoubleComplex) return T(element_at<std::complex<double>>(base, index));
  }
  switch (type) {
    case DataType::Float: return static_cast<T>(element_at<float>(base, index));
    case DataType::Double: return static_cast<T>(element_at<double>(base, index));
    case DataType::Half: return static_cast<T>(half_to_float(element_at<uint16_t>(base, index)));
    case DataType::Bfloat: return static_cast<T>(bfloat16_to_float(element_at<uint16_t>(base, index)));
    case DataType::Int8: return static_cast<T>(element_at<int8_t>(base, index));
    case DataType::Uint8: return static_cast<T>(element_at<uint8_t>(base, index));
    case DataType::Int32: return static_cast<T>(element_at<int32_t>(base, index));
    default: throw FallbackUnsupported();
  }
}

template <class T> void store_element(void* base, DataType type, int64_t index, T value) {
  if constexpr (kIsComplex<T>) {
    if (type == DataType::Complex) static_cast<std::complex<float>*>(base)[index] = std::complex<float>(value);
    else if (type == DataType::DoubleComplex) static_cast<std::complex<double>*>(base)[index] = std::complex<double>(value);
    else throw FallbackUnsupported();
  } else {
    switch (type) {
      case DataType::Float: static_cast<float*>(base)[index] = static_cast<float>(value); return;
      case DataType::Double: static_cast<double*>(base)[index] = static_cast<double>(value); return;
      case DataType::Half: static_cast<uint16_t*>(base)[index] = to_half(static_cast<double>(value)); return;
      case DataType::Bfloat: static_cast<uint16_t*>(base)[index] = to_bfloat16(static_cast<double>(value)); return;
      case DataType::Int32: static_cast<int32_t*>(base)[index] = static_cast<int32_t>(value); return;
      default: throw FallbackUnsupported();
    }
  }
}

template <class T> struct Tag { using type = T; };

// Calls f(Tag<T>()), where T is the type in which sums of such numbers are accumulated.
template <class F> void with_accumulator_type(DataType type, F f) {
  switch (type) {
    case DataType::Half:
    case DataType::Bfloat:
    case DataType::Float: return f(Tag<float>());
    case DataType::Double: return f(Tag<double>());
    case DataType::Complex: return f(Tag<std::complex<float>>());
    case DataType::DoubleComplex: return f(Tag<std::complex<double>>());
    case DataType::Int32: return f(Tag<int32_t>());
    default: throw FallbackUnsupported();
  }
}

}  // namespace vgpu
