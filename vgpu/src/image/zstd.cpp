// Decompression of Zstandard frames: literals and sequences, block by block (RFC 8878).
#include "zstd.h"

#include <algorithm>
#include <cstring>

#include "bit_reader.h"
#include "entropy_tables.h"

namespace vgpu {
namespace {

[[noreturn]] void fail(const char* what) { throw InvalidImage(std::string("damaged zstd data: ") + what); }

constexpr uint64_t kMaxBlockBytes = 128 << 10;

uint64_t read_little_endian(std::string_view data, size_t position, size_t bytes) {
  if (position > data.size() || data.size() - position < bytes) fail("it ends too soon");
  uint64_t value = 0;
  for (size_t k = 0; k < bytes; k++) value |= uint64_t(static_cast<uint8_t>(data[position + k])) << (8 * k);
  return value;
}

// The value of a sequence code: a base, and the number of extra bits that are added to it.
struct Extra {
  uint32_t base;
  uint8_t bits;
};
constexpr Extra kLiteralLengths[] = {
    {0, 0},   {1, 0},   {2, 0},     {3, 0},     {4, 0},     {5, 0},     {6, 0},      {7, 0},      {8, 0},
    {9, 0},   {10, 0},  {11, 0},    {12, 0},    {13, 0},    {14, 0},    {15, 0},     {16, 1},     {18, 1},
    {20, 1},  {22, 1},  {24, 2},    {28, 2},    {32, 3},    {40, 3},    {48, 4},     {64, 6},     {128, 7},
    {256, 8}, {512, 9}, {1024, 10}, {2048, 11}, {4096, 12}, {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr Extra kMatchLengths[] = {
    {3, 0},   {4, 0},   {5, 0},     {6, 0},     {7, 0},     {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0}, {13, 0},
    {14, 0},  {15, 0},  {16, 0},    {17, 0},    {18, 0},    {19, 0},    {20, 0},     {21, 0},     {22, 0},    {23, 0}, {24, 0},
    {25, 0},  {26, 0},  {27, 0},    {28, 0},    {29, 0},    {30, 0},    {31, 0},     {32, 0},     {33, 0},    {34, 0}, {35, 1},
    {37, 1},  {39, 1},  {41, 1},    {43, 2},    {47, 2},    {51, 3},    {59, 3},     {67, 4},     {83, 4},    {99, 5}, {131, 7},
    {259, 8}, {515, 9}, {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};

// Default frequencies of the codes of literal lengths, match lengths and offsets, in 1 / 2^default_log; -1: less.
const std::vector<int> kLiteralCounts = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                         2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
const std::vector<int> kMatchCounts = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
const std::vector<int> kOffsetCounts = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

// One of the three codes of sequences: the table that is in use, and what it may be.
struct SequenceCode {
  const std::vector<int>* default_counts;
  uint32_t default_log, max_log, max_symbol;
  FseTable table;
  uint32_t state = 0;

  // Sets the table in one of four modes: default, one symbol, stored in the block, or that of the block before.
  void select(uint32_t mode, std::string_view block, size_t& position) {
    if (mode == 0) {
      table = build_fse_table(*default_counts, default_log);
    } else if (mode == 1) {
      table.log = 0;
      table.states = {{static_cast<uint8_t>(read_little_endian(block, position++, 1)), 0, 0}};
      if (table.states[0].symbol > max_symbol) fail("an unknown code");
    } else if (mode == 2) {
      size_t used = 0;
      table = read_fse_table(block.substr(position), max_log, max_symbol, used);
      position += used;
    } else if (table.states.empty()) {
      fail("a table of a block before that has none");
    }
  }
  void begin(BackwardBits& bits) { state = static_cast<uint32_t>(bits.read(table.log)); }
  uint32_t symbol() const { return table.states[state].symbol; }
  void advance(BackwardBits& bits) {
    const FseTable::State& current = table.states[state];
    state = current.base + static_cast<uint32_t>(bits.read(current.bits));
  }
};

class Frame {
 public:
  Frame(std::string_view packed, uint64_t max_bytes) : packed_(packed), max_bytes_(max_bytes) {}

  std::string unpack() {
    read_header();
    for (bool last = false; !last;) {
      const uint64_t head = read_little_endian(packed_, position_, 3), size = head >> 3;
      position_ += 3;
      last = head & 1;
      unpack_block(head >> 1 & 3, size);
    }
    return std::move(output_);
  }

 private:
  void read_header() {
    if (read_little_endian(packed_, 0, 4) != kZstdMagic) fail("no frame");
    const uint64_t flags = read_little_endian(packed_, 4, 1);
    const bool is_single_segment = flags >> 5 & 1;
    static constexpr size_t kDictionaryBytes[] = {0, 1, 2, 4}, kSizeBytes[] = {0, 2, 4, 8};
    if (flags & 3) fail("a dictionary");
    position_ = 5 + !is_single_segment + kDictionaryBytes[flags & 3];
    const size_t bytes = flags >> 6 ? kSizeBytes[flags >> 6] : is_single_segment ? 1 : 0;
    const uint64_t size = read_little_endian(packed_, position_, bytes) + (bytes == 2 ? 256 : 0);
    if (size > max_bytes_) fail("more than its container says");
    output_.reserve(size);
    position_ += bytes;
  }

  void unpack_block(uint64_t kind, uint64_t size) {
    enum : uint64_t { kRaw, kRepeated, kPacked };
    if (kind > kPacked || size > kMaxBlockBytes) fail("an unknown block");
    if (kind == kRepeated) {
      const char byte = static_cast<char>(read_little_endian(packed_, position_++, 1));
      check_growth(size);
      output_.append(size, byte);
      return;
    }
    if (packed_.size() - position_ < size) fail("it ends too soon");
    const std::string_view block = packed_.substr(position_, size);
    position_ += size;
    if (kind == kPacked) return unpack_sequences(block);
    check_growth(size);
    output_.append(block);
  }

  void check_growth(uint64_t bytes) const {
    if (output_.size() + bytes > max_bytes_) fail("more than its container says");
  }

  // Reads literals that are stored plainly, or one that is repeated; returns the number of bytes read.
  size_t read_plain_literals(std::string_view block, bool repeated, uint64_t format) {
    const size_t head = format == 1 ? 2 : format == 3 ? 3 : 1;
    const uint64_t size = read_little_endian(block, 0, head) >> (head == 1 ? 3 : 4);
    if (size > kMaxBlockBytes) fail("too many literals");
    const size_t stored_bytes = repeated ? 1 : size;
    if (block.size() < head + stored_bytes) fail("it ends too soon");
    literals_ = repeated ? std::string(size, block[head]) : std::string(block.substr(head, size));
    return head + stored_bytes;
  }

  // Reads the literals into literals_; returns the position of the sequences.
  size_t read_literals(std::string_view block) {
    enum : uint64_t { kRaw, kRepeated, kPacked, kPackedAsBefore };
    const uint64_t kind = read_little_endian(block, 0, 1) & 3, format = read_little_endian(block, 0, 1) >> 2 & 3;
    if (kind == kRaw || kind == kRepeated) return read_plain_literals(block, kind == kRepeated, format);
    const size_t head = format < 2 ? 3 : format + 2;
    const uint32_t width = format < 2 ? 10 : format == 2 ? 14 : 18;
    const uint64_t word = read_little_endian(block, 0, head) >> 4, mask = (uint64_t(1) << width) - 1;
    const uint64_t size = word & mask, packed = word >> width & mask;
    if (size > kMaxBlockBytes || block.size() < head + packed) fail("too many literals");
    std::string_view data = block.substr(head, packed);
    size_t used = 0;
    if (kind == kPacked) huffman_ = read_huffman_table(data, used);
    if (huffman_.entries.empty()) fail("literals without a table");
    unpack_literals(data.substr(used), size, format == 0 ? 1 : 4);
    return head + packed;
  }

  void unpack_literals(std::string_view data, uint64_t size, uint32_t streams) {
    literals_.clear();
    if (streams == 1) return unpack_stream(data, size);
    constexpr size_t kJumpBytes = 6;
    size_t position = kJumpBytes;
    const uint64_t stream_size = (size + 3) / 4;
    if (3 * stream_size > size) fail("too few literals");
    for (uint32_t k = 0; k < 4; k++) {
      const size_t bytes = k < 3 ? read_little_endian(data, 2 * k, 2) : data.size() - std::min(position, data.size());
      if (position > data.size() || data.size() - position < bytes) fail("it ends too soon");
      unpack_stream(data.substr(position, bytes), k < 3 ? stream_size : size - 3 * stream_size);
      position += bytes;
    }
  }

  void unpack_stream(std::string_view data, uint64_t size) {
    BackwardBits bits(data);
    for (uint64_t k = 0; k < size; k++) {
      const HuffmanTable::Entry& entry = huffman_.entries[bits.peek(huffman_.log)];
      bits.skip(entry.bits);
      literals_.push_back(static_cast<char>(entry.symbol));
    }
    if (!bits.is_finished()) fail("literals that do not end where they must");
  }

  // Reads the number of sequences and their tables; returns the position behind them.
  size_t read_sequence_header(std::string_view block, size_t position, uint64_t& count) {
    count = read_little_endian(block, position++, 1);
    if (count == 255) count = read_little_endian(block, position, 2) + 0x7f00, position += 2;
    else if (count >= 128) count = ((count - 128) << 8) + read_little_endian(block, position++, 1);
    if (!count) return position;
    const uint64_t modes = read_little_endian(block, position++, 1);
    if (modes & 3) fail("an unknown mode");
    lengths_.select(modes >> 6 & 3, block, position);
    offsets_.select(modes >> 4 & 3, block, position);
    matches_.select(modes >> 2 & 3, block, position);
    return position;
  }

  void unpack_sequences(std::string_view block) {
    uint64_t count = 0;
    const size_t position = read_sequence_header(block, read_literals(block), count);
    size_t literal = 0;
    if (count) {
      BackwardBits bits(block.substr(std::min(position, block.size())));
      lengths_.begin(bits), offsets_.begin(bits), matches_.begin(bits);
      for (uint64_t k = 0; k < count; k++) unpack_sequence(bits, literal, k + 1 == count);
      if (!bits.is_finished()) fail("sequences that do not end where they must");
    }
    check_growth(literals_.size() - literal);
    output_.append(literals_, literal, std::string::npos);
  }

  void unpack_sequence(BackwardBits& bits, size_t& literal, bool last) {
    const uint32_t offset_code = offsets_.symbol();
    const uint64_t offset = (uint64_t(1) << offset_code) + bits.read(offset_code);
    const Extra &match = kMatchLengths[matches_.symbol()], &length = kLiteralLengths[lengths_.symbol()];
    const uint64_t copied = match.base + bits.read(match.bits);
    const uint64_t literals = length.base + bits.read(length.bits);
    if (!last) lengths_.advance(bits), matches_.advance(bits), offsets_.advance(bits);
    if (bits.is_overrun()) fail("sequences that end too soon");
    if (literals > literals_.size() - literal) fail("more literals than there are");
    check_growth(literals + copied);
    output_.append(literals_, literal, literals);
    literal += literals;
    copy(distance_of(offset, literals == 0), copied);
  }

  // Returns one of the last three distances, or a new one.
  uint64_t distance_of(uint64_t offset, bool no_literals) {
    uint64_t distance = offset - 3, index = 3;
    if (offset <= 3) {
      index = offset - 1 + no_literals;
      distance = index == 3 ? recent_[0] - 1 : recent_[index];
    }
    for (uint64_t k = std::min<uint64_t>(index, 2); k > 0; k--) recent_[k] = recent_[k - 1];
    return recent_[0] = distance;
  }

  void copy(uint64_t distance, uint64_t bytes) {
    if (!distance || distance > output_.size()) fail("a copy of nothing");
    const size_t data = output_.size() - distance, to = output_.size();
    output_.resize(to + bytes);
    if (distance >= bytes) std::memcpy(&output_[to], &output_[data], bytes);
    else
      for (size_t k = 0; k < bytes; k++) output_[to + k] = output_[data + k];
  }

  std::string_view packed_;
  uint64_t max_bytes_;
  size_t position_ = 0;
  std::string output_, literals_;
  HuffmanTable huffman_;
  SequenceCode lengths_{&kLiteralCounts, 6, 9, 35, {}}, matches_{&kMatchCounts, 6, 9, 52, {}},
      offsets_{&kOffsetCounts, 5, 8, 31, {}};
  uint64_t recent_[3] = {1, 4, 8};
};

}  // namespace

std::string unpack_zstd(std::string_view packed, uint64_t max_bytes) { return Frame(packed, max_bytes).unpack(); }

}  // namespace vgpu
