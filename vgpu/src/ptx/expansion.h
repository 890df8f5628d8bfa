// Statements that are decoded as several simpler ones: loads, stores and transpositions of matrices by a whole warp (wmma,
// ldmatrix, movmatrix), and policies of caches.
#pragma once
#include <string>

#include "decoder.h"

namespace vgpu::ptx {

constexpr std::string_view kWmmaShapes = "m16n16k16|m8n32k16|m32n8k16|m16n16k8";

// The elements of a wmma fragment: a matrix of rows x columns elements of `bytes` bytes, of which each lane has `per_lane`, in
// order of the rows.  PTX leaves open which lane has which element; if there are more places than elements, they repeat.
struct WmmaFragment {
  uint32_t rows = 0, columns = 0, bytes = 0, registers = 0;
  uint32_t per_register() const { return bytes < 4 ? 4 / bytes : 1; }
  uint32_t per_lane() const { return registers * per_register(); }
};
// matrix: "a", "b", "c" or "d".  shape: such as m16n16k16.  type: of its elements.
WmmaFragment wmma_fragment(std::string_view matrix, std::string_view shape, std::string_view type);

// Returns the text of the statements that do the same; empty: the operands are not supported.  guard: `@%p ` or empty;
// address_bytes: the width of the address's register.
using Expand = std::string (*)(const Statement& s, const std::string& guard, uint32_t address_bytes);
Expand expand_function(const Statement& s);  // nullptr: it is no such statement

}  // namespace vgpu::ptx
