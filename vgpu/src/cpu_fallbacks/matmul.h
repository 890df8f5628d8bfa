// The product of two matrices. Each element sums its terms in order, beginning with the first.
#pragma once
#include <cstdint>
#include <vector>

#include "core/lanes.h"

namespace vgpu {

template <class T> class MatrixProduct {
 public:
  MatrixProduct(int64_t rows, int64_t columns, int64_t depth)
      : rows_(rows),
        columns_(columns),
        depth_(depth),
        left_((rows + kTile - 1) / kTile * kTile * depth),
        right_(columns * depth) {}

  T& left(int64_t row, int64_t term) { return left_[(row / kTile * depth_ + term) * kTile + row % kTile]; }
  T& right(int64_t term, int64_t column) { return right_[column * depth_ + term]; }

  // Computes the product, and calls f(row, column, sum) for each element.
  template <class F> void for_each(F f) const {
    for (int64_t row = 0; row < rows_; row += kTile)
      for (int64_t column = 0; column < columns_; column++) {
        T sums[kTile] = {};
        add_tile(&left_[row * depth_], &right_[column * depth_], sums);
        for (int64_t k = 0; k < kTile && row + k < rows_; k++) f(row + k, column, sums[k]);
      }
  }

 private:
  static constexpr int64_t kTile = 32;  // rows at once: their sums stay in registers

  void add_tile(const T* left, const T* right, T* sums) const {
    for (int64_t term = 0; term < depth_; term++, left += kTile) {
      const T factor = right[term];
      VGPU_INDEPENDENT
      for (int64_t k = 0; k < kTile; k++) sums[k] += left[k] * factor;
    }
  }

  int64_t rows_, columns_, depth_;
  std::vector<T> left_, right_;
};

}  // namespace vgpu
