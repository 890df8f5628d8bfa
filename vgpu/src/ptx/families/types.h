// Selects functions by PTX types: f(Tag<T>()) returns the function for the C++ type T.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/instruction_set.h"

namespace vgpu {

template <class T>
struct Tag {
  using type = T;
};

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// These return nullptr for other types.
template <class F>
Execute for_integer(std::string_view t, F f) {
  if (t == "s32") return f(Tag<int32_t>());
  if (t == "u32" || t == "b32") return f(Tag<uint32_t>());
  if (t == "s64") return f(Tag<int64_t>());
  if (t == "u64" || t == "b64") return f(Tag<uint64_t>());
  if (t == "s16") return f(Tag<int16_t>());
  if (t == "u16" || t == "b16") return f(Tag<uint16_t>());
  return nullptr;
}

template <class F>
Execute for_float(std::string_view t, F f) {
  if (t == "f32") return f(Tag<float>());
  if (t == "f64") return f(Tag<double>());
  return nullptr;
}

// Selects by size, with unsigned integers, for instructions that only move bits.
template <class F>
Execute for_size(uint32_t bytes, F f) {
  if (bytes == 1) return f(Tag<uint8_t>());
  if (bytes == 2) return f(Tag<uint16_t>());
  if (bytes == 4) return f(Tag<uint32_t>());
  if (bytes == 8) return f(Tag<uint64_t>());
  return nullptr;
}

// Whether an operation is so slow that it should not be computed for inactive lanes.
template <class Op>
constexpr bool kIsExpensive = false;

template <class Op, class D, class F>
inline void apply_per_lane(uint32_t mask, D* d, F f) {
  if constexpr (kIsExpensive<Op>) for_each_lane(mask, [=](uint32_t l) { d[l] = static_cast<D>(f(l)); });
  else assign_lanes(mask, d, f);
}

// Execute d = Op::of(a), Op::of(a, b) or Op::of(a, b, c) for each lane.
template <class D, class T, class Op>
void unary(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  apply_per_lane<Op>(warp.active_mask, lane_values<D>(warp, i.d), [=](uint32_t l) { return Op::of(a[l]); });
}

template <class D, class T, class Op>
void binary(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  const T* b = lane_values<T>(warp, i.b);
  apply_per_lane<Op>(warp.active_mask, lane_values<D>(warp, i.d), [=](uint32_t l) { return Op::of(a[l], b[l]); });
}

template <class D, class T, class Op>
void ternary(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  const T* b = lane_values<T>(warp, i.b);
  const D* c = lane_values<D>(warp, i.c);  // of the result's width: mad.wide
  apply_per_lane<Op>(warp.active_mask, lane_values<D>(warp, i.d), [=](uint32_t l) { return Op::of(a[l], b[l], c[l]); });
}

}  // namespace vgpu
