// Reads the tables of finite state entropy and of Huffman's code from a Zstandard block (RFC 8878, section 4).
#include "entropy_tables.h"

#include "bit_reader.h"

namespace vgpu {
namespace {

[[noreturn]] void fail(const char* what) { throw InvalidImage(std::string("damaged zstd data: ") + what); }

uint32_t highest_bit(uint32_t value) { return 31 - static_cast<uint32_t>(__builtin_clz(value)); }

constexpr uint32_t kMaxHuffmanBits = 11;

// Reads Huffman weights that are compressed by FSE with two alternating states.
std::vector<uint8_t> read_packed_weights(std::string_view data) {
  size_t used = 0;
  const FseTable table = read_fse_table(data, 6, 255, used);
  BackwardBits bits(data.substr(used));
  uint32_t state[2];
  for (uint32_t& initial : state) initial = static_cast<uint32_t>(bits.read(table.log));
  std::vector<uint8_t> weights;
  for (uint32_t turn = 0; weights.size() < 255; turn ^= 1) {
    const FseTable::State& current = table.states[state[turn]];
    weights.push_back(current.symbol);
    state[turn] = current.base + static_cast<uint32_t>(bits.read(current.bits));
    if (!bits.is_overrun()) continue;
    weights.push_back(table.states[state[turn ^ 1]].symbol);
    return weights;
  }
  fail("too many weights");
}

// Builds a table from weights; the weight of the last symbol completes their sum to a power of two.
HuffmanTable build_huffman_table(std::vector<uint8_t> weights) {
  uint32_t sum = 0;
  for (uint8_t weight : weights) {
    if (weight > kMaxHuffmanBits) fail("too large a weight");
    sum += weight ? 1u << (weight - 1) : 0;
  }
  if (!sum) fail("no weights");
  HuffmanTable table;
  table.log = highest_bit(sum) + 1;
  const uint32_t missing = (1u << table.log) - sum;
  if (table.log > kMaxHuffmanBits || (missing & (missing - 1)) || weights.size() > 255)
    fail("weights that are no power of two");
  weights.push_back(static_cast<uint8_t>(highest_bit(missing) + 1));
  table.entries.resize(size_t(1) << table.log);
  size_t position = 0;
  for (uint32_t weight = 1; weight <= table.log; weight++) {
    for (size_t symbol = 0; symbol < weights.size(); symbol++) {
      if (weights[symbol] != weight) continue;
      for (uint32_t k = 0; k < 1u << (weight - 1); k++)
        table.entries.at(position++) = {static_cast<uint8_t>(symbol), static_cast<uint8_t>(table.log + 1 - weight)};
    }
  }
  return table;
}

}  // namespace

FseTable build_fse_table(const std::vector<int>& counts, uint32_t log) {
  const uint32_t size = 1u << log, step = (size >> 1) + (size >> 3) + 3;
  FseTable table;
  table.log = log, table.states.resize(size);
  std::vector<uint32_t> next(counts.size());
  uint32_t last = size;  // symbols with count -1, rarer than one unit, have one state each from here to the end
  for (size_t symbol = 0; symbol < counts.size(); symbol++) {
    next[symbol] = counts[symbol] == -1 ? 1 : static_cast<uint32_t>(counts[symbol]);
    if (counts[symbol] == -1) table.states[--last].symbol = static_cast<uint8_t>(symbol);
  }
  uint32_t position = 0;
  for (size_t symbol = 0; symbol < counts.size(); symbol++) {
    for (int k = 0; k < counts[symbol]; k++) {
      table.states[position].symbol = static_cast<uint8_t>(symbol);
      do position = (position + step) & (size - 1);
      while (position >= last);
    }
  }
  if (position != 0) fail("counts that do not fill a table");
  for (FseTable::State& state : table.states) {
    const uint32_t number = next[state.symbol]++;
    state.bits = static_cast<uint8_t>(log - highest_bit(number));
    state.base = static_cast<uint16_t>((number << state.bits) - size);
  }
  return table;
}

FseTable read_fse_table(std::string_view data, uint32_t max_log, uint32_t max_symbol, size_t& used) {
  ForwardBits bits(data);
  const uint32_t log = bits.read(4) + 5;
  if (log > max_log) fail("too large a table");
  int remaining = (1 << log) + 1;
  std::vector<int> counts;
  while (remaining > 1 && counts.size() <= max_symbol) {
    // Small values have one bit less.
    const uint32_t width = highest_bit(static_cast<uint32_t>(remaining)) + 1, half = 1u << (width - 1);
    const uint32_t small = (2u << (width - 1)) - 1 - static_cast<uint32_t>(remaining);
    uint32_t value = bits.peek(width);
    if ((value & (half - 1)) < small) value &= half - 1, bits.skip(width - 1);
    else bits.skip(width), value -= value >= half ? small : 0;
    const int count = static_cast<int>(value) - 1;
    remaining -= count < 0 ? -count : count;
    counts.push_back(count);
    if (count != 0) continue;
    for (uint32_t repeat = 3; repeat == 3;) {  // number of further absent symbols
      repeat = bits.read(2);
      counts.resize(counts.size() + repeat);
      if (counts.size() > max_symbol + 1) fail("too many symbols");
    }
  }
  if (remaining != 1 || counts.size() > max_symbol + 1) fail("counts that do not fill a table");
  used = bits.bytes();
  return build_fse_table(counts, log);
}

HuffmanTable read_huffman_table(std::string_view data, size_t& used) {
  constexpr uint32_t kDirect = 128;  // if the first byte is not less, plain weights of 4 bits follow
  if (data.empty()) fail("no weights");
  const uint32_t head = static_cast<uint8_t>(data[0]);
  const size_t bytes = head < kDirect ? head : (head - kDirect + 2) / 2;
  if (data.size() < 1 + bytes) fail("weights that end too soon");
  used = 1 + bytes;
  if (head < kDirect) return build_huffman_table(read_packed_weights(data.substr(1, bytes)));
  std::vector<uint8_t> weights;
  for (uint32_t k = 0; k < head - kDirect + 1; k++) {
    const uint8_t pair = static_cast<uint8_t>(data[1 + k / 2]);
    weights.push_back(k % 2 ? pair & 15 : pair >> 4);
  }
  return build_huffman_table(std::move(weights));
}

}  // namespace vgpu
