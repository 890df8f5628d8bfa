// The product of two matrices: each element a sum in the order of its addends, the first one first.
#pragma once
#include <cstdint>
#include <vector>

#include "core/lanes.h"

namespace vgpu {

template <class T> class Product {
 public:
  Product(int64_t rows, int64_t columns, int64_t addends)
      : rows_(rows),
        columns_(columns),
        addends_(addends),
        left_((rows + kTile - 1) / kTile * kTile * addends),
        right_(columns * addends) {}

  T& left(int64_t row, int64_t addend) { return left_[(row / kTile * addends_ + addend) * kTile + row % kTile]; }
  T& right(int64_t addend, int64_t column) { return right_[column * addends_ + addend]; }

  // made(row, column, sum) for each element.
  template <class F> void each(F made) const {
    for (int64_t row = 0; row < rows_; row += kTile)
      for (int64_t column = 0; column < columns_; column++) {
        T sums[kTile] = {};
        tile(&left_[row * addends_], &right_[column * addends_], sums);
        for (int64_t k = 0; k < kTile && row + k < rows_; k++) made(row + k, column, sums[k]);
      }
  }

 private:
  static constexpr int64_t kTile = 32;  // rows at once: their sums stay in registers

  void tile(const T* left, const T* right, T* sums) const {
    for (int64_t addend = 0; addend < addends_; addend++, left += kTile) {
      const T by = right[addend];
      VGPU_INDEPENDENT
      for (int64_t k = 0; k < kTile; k++) sums[k] += left[k] * by;
    }
  }

  int64_t rows_, columns_, addends_;
  std::vector<T> left_, right_;
};

}  // namespace vgpu
