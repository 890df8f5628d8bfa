// Decoding tables of Zstandard's two entropy codes: finite state entropy (FSE) and Huffman codes.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace vgpu {

struct FseTable {
  // A state yields its symbol; the next state is `base` plus the number in the next `bits` bits of the input.
  struct State {
    uint8_t symbol, bits;
    uint16_t base;
  };
  uint32_t log = 0;  // there are 2^log states
  std::vector<State> states;
};

// Builds a table from the frequency of each symbol, in units of 1 / 2^log.  -1: rarer than one unit, with one state at the end.
FseTable build_fse_table(const std::vector<int>& counts, uint32_t log);

// Reads the frequencies at the beginning of the data; used: receives the number of bytes read.
FseTable read_fse_table(std::string_view data, uint32_t max_log, uint32_t max_symbol, size_t& used);

struct HuffmanTable {
  struct Entry { uint8_t symbol, bits; };  // bits: how many the code of the symbol has
  uint32_t log = 0;
  std::vector<Entry> entries;  // indexed by the next `log` bits
};

HuffmanTable read_huffman_table(std::string_view data, size_t& used);

}  // namespace vgpu
