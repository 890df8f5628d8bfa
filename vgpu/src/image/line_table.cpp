// Runs the line programs of .debug_line (DWARF Debugging Information Format, section 6.2).
#include "line_table.h"

#include <cstring>

#include "invalid_image.h"

namespace vgpu {
namespace {

constexpr size_t kMaxRows = 1 << 22;   // of a section
constexpr size_t kMaxInlined = 16;     // calls

enum StandardOpcode : uint8_t {
  kExtended,
  kCopy,
  kAdvanceAddress,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegateStatement,
  kBasicBlock,
  kAddConstantAddress,
  kFixedAdvance
};
enum ExtendedOpcode : uint8_t { kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90 };

class Reader {
 public:
  explicit Reader(std::string_view bytes, uint64_t at = 0) : bytes_(bytes), at_(at) {}
  uint64_t at() const { return at_; }
  bool is_at_end() const { return at_ >= bytes_.size(); }
  void skip_to(uint64_t position) {
    if (position < at_ || position > bytes_.size()) fail();
    at_ = position;
  }
  template <class T> T read() {
    T value;
    if (bytes_.size() - at_ < sizeof value) fail();
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    return at_ += sizeof value, value;
  }
  uint64_t read_unsigned() { return read_leb128().first; }
  int64_t read_signed() {
    const auto [value, bits] = read_leb128();
    const bool is_negative = bits < 64 && value >> (bits - 1) & 1;
    return static_cast<int64_t>(is_negative ? value | ~uint64_t{0} << bits : value);
  }
  std::string read_text() {
    const size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) fail();
    const std::string text(bytes_.substr(at_, end - at_));
    return at_ = end + 1, text;
  }

 private:
  [[noreturn]] static void fail() { throw InvalidImage("damaged line table"); }
  // Returns a number of 7 bits a byte, the lowest first, and how many bits it has.
  std::pair<uint64_t, unsigned> read_leb128() {
    uint64_t value = 0;
    for (unsigned bits = 0; bits < 63; bits += 7) {
      const auto byte = read<uint8_t>();
      value |= uint64_t(byte & 0x7f) << bits;
      if (!(byte & 0x80)) return {value, bits + 7};
    }
    fail();
  }

  std::string_view bytes_;
  uint64_t at_;
};

// One unit of the section: a header, and a program that makes rows of (address, file, line).
class LineProgram {
 public:
  LineProgram(std::string_view section, uint64_t begin, const std::function<std::string(uint64_t)>& function_at)
      : reader_(section, begin), function_at_(function_at) {
    const auto length = reader_.read<uint32_t>();
    end_ = reader_.at() + length;
    Reader(section, begin).skip_to(end_);
  }
  uint64_t end() const { return end_; }

  void run(LineTables& tables) {
    read_header();
    while (reader_.at() < end_) step(tables);
  }

 private:
  struct Row {
    uint64_t file = 1;
    int64_t line = 1;
    uint64_t call = 0;  // number of the row, from 1 on, of the call that inlined its code; 0: none
  };

  void read_header() {
    const auto version = reader_.read<uint16_t>();
    if (version < 2 || version > 4) throw InvalidImage("a line table of another version");
    const auto header_length = reader_.read<uint32_t>();
    const uint64_t program = reader_.at() + header_length;
    address_step_ = reader_.read<uint8_t>();
    if (version == 4) reader_.read<uint8_t>();  // operations of an instruction
    reader_.read<uint8_t>();                    // whether rows begin statements
    line_base_ = reader_.read<int8_t>(), line_range_ = reader_.read<uint8_t>(), opcode_base_ = reader_.read<uint8_t>();
    if (!line_range_ || !opcode_base_) throw InvalidImage("damaged line table");
    for (unsigned opcode = 1; opcode < opcode_base_; opcode++) operands_.push_back(reader_.read<uint8_t>());
    std::vector<std::string> folders{""};
    for (std::string name = reader_.read_text(); !name.empty(); name = reader_.read_text()) folders.push_back(name + "/");
    for (std::string name = reader_.read_text(); !name.empty(); name = reader_.read_text()) {
      const uint64_t folder = reader_.read_unsigned();
      reader_.read_unsigned(), reader_.read_unsigned();  // time and size
      files_.push_back((folder < folders.size() && name[0] != '/' ? folders[folder] : "") + name);
    }
    reader_.skip_to(program);
  }

  void step(LineTables& tables) {
    const auto opcode = reader_.read<uint8_t>();
    if (opcode >= opcode_base_) {
      advance((opcode - opcode_base_) / line_range_);
      row_.line += line_base_ + (opcode - opcode_base_) % line_range_;
      return add_row(tables);
    }
    switch (opcode) {
      case kExtended: return step_extended(tables);
      case kCopy: return add_row(tables);
      case kAdvanceAddress: return advance(reader_.read_unsigned());
      case kAdvanceLine: row_.line += reader_.read_signed(); return;
      case kSetFile: row_.file = reader_.read_unsigned(); return;
      case kAddConstantAddress: return advance((255 - opcode_base_) / line_range_);
      case kFixedAdvance: address_ += reader_.read<uint16_t>(); return;
      default:
        for (unsigned k = 0; k < operands_.at(opcode - 1); k++) reader_.read_unsigned();
    }
  }

  void step_extended(LineTables& tables) {
    const uint64_t length = reader_.read_unsigned(), next = reader_.at() + length;
    switch (length ? reader_.read<uint8_t>() : 0) {
      case kEndSequence:
        add_row(tables, /*is_end=*/true);
        row_ = {}, address_ = 0, rows_.clear(), function_.clear();
        break;
      case kSetAddress:
        function_ = function_at_(reader_.at());
        address_ = reader_.read<uint64_t>();
        break;
      case kInlinedCall: row_.call = reader_.read_unsigned(); break;
      default: break;
    }
    reader_.skip_to(next);
  }

  void advance(uint64_t steps) { address_ += steps * address_step_; }

  // Adds the lines of the code from the current address on; is_end: it has none.
  void add_row(LineTables& tables, bool is_end = false) {
    if (++all_rows_ > kMaxRows) throw InvalidImage("damaged line table");
    rows_.push_back(row_);
    if (function_.empty() || address_ > UINT32_MAX) return;
    std::vector<SourceLine>& lines = tables[function_][static_cast<uint32_t>(address_)];
    lines.clear();
    uint64_t number = is_end ? 0 : rows_.size();
    for (size_t depth = 0; number && depth < kMaxInlined; depth++) {
      const Row& row = rows_[number - 1];
      if (row.file && row.file <= files_.size() && row.line > 0 && row.line <= UINT32_MAX)
        lines.push_back({files_[row.file - 1], static_cast<uint32_t>(row.line)});
      number = row.call < number ? row.call : 0;  // a call is a row before its code
    }
  }

  Reader reader_;
  uint64_t end_;
  const std::function<std::string(uint64_t)>& function_at_;
  uint8_t address_step_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  std::vector<uint8_t> operands_;  // of standard opcodes, from 1 on
  std::vector<std::string> files_;
  std::string function_;
  uint64_t address_ = 0;
  Row row_;
  std::vector<Row> rows_;  // of the sequence
  size_t all_rows_ = 0;
};

}  // namespace

LineTables read_line_tables(std::string_view section, const std::function<std::string(uint64_t)>& function_at) {
  LineTables tables;
  try {
    for (uint64_t begin = 0; begin < section.size();) {
      LineProgram program(section, begin, function_at);
      program.run(tables);
      begin = program.end();
    }
  } catch (const InvalidImage&) { return {}; }
  return tables;
}

}  // namespace vgpu
