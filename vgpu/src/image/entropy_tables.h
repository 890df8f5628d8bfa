// The two entropy codes of Zstandard: finite state entropy, and Huffman's.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace vgpu {

struct FseTable {
  struct State {
    uint8_t symbol, bits;
    uint16_t base;
  };
  uint32_t log = 0;  // there are 2^log states
  std::vector<State> states;
};

// Of how often each symbol comes: -1 stands for less than once.
FseTable build_fse_table(const std::vector<int>& counts, uint32_t log);

// Reads the counts at the beginning of `from`; `used`: how many bytes they take.
FseTable read_fse_table(std::string_view from, uint32_t max_log, uint32_t max_symbol, size_t& used);

struct HuffmanTable {
  struct Entry { uint8_t symbol, bits; };
  uint32_t log = 0;
  std::vector<Entry> entries;  // by the next `log` bits
};

HuffmanTable read_huffman_table(std::string_view from, size_t& used);

}  // namespace vgpu
