// Makes PTX text: each lane computes the addresses of its elements, and loads or stores them one by one.
#include "expansion.h"

#include <map>

namespace vgpu::ptx {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }
uint32_t log2_of(uint32_t power) { return static_cast<uint32_t>(__builtin_ctz(power)); }

// Returns the number behind a letter of a shape: 16 for m of m16n8k32.
uint32_t extent(std::string_view shape, char letter) {
  return static_cast<uint32_t>(std::strtoul(std::string(shape.substr(shape.find(letter) + 1)).c_str(), nullptr, 10));
}

class Text {
 public:
  explicit Text(std::string guard) : guard_(std::move(guard)) {
    text_ =
        "{ .reg .u32 %x_lane, %x_row, %x_column, %x_index, %x_stride, %x_word; .reg .u64 %x_base, %x_address; "
        ".reg .b16 %x_half<2>; ";
  }
  void add(const std::string& statement) { text_ += guard_ + statement + "; "; }
  std::string finish() { return text_ + "}"; }

 private:
  std::string guard_, text_;
};

void set_base(Text& text, const Operand& address, uint32_t address_bytes) {
  const std::string base(address.text);
  text.add(address_bytes == 4 ? "cvt.u64.u32 %x_base, " + base : "mov.u64 %x_base, " + base);
  if (address.offset) text.add("add.s64 %x_base, %x_base, " + std::to_string(address.offset));
  text.add("mov.u32 %x_lane, %laneid");
}

// Sets %x_address to that of a lane's element.
void set_address(Text& text, const WmmaFragment& fragment, uint32_t element, bool by_rows) {
  text.add("mad.lo.u32 %x_index, %x_lane, " + number(fragment.per_lane()) + ", " + number(element));
  text.add("and.b32 %x_index, %x_index, " + number(fragment.rows * fragment.columns - 1));
  text.add("shr.u32 %x_row, %x_index, " + number(log2_of(fragment.columns)));
  text.add("and.b32 %x_column, %x_index, " + number(fragment.columns - 1));
  text.add(by_rows ? "mad.lo.u32 %x_index, %x_row, %x_stride, %x_column" : "mad.lo.u32 %x_index, %x_column, %x_stride, %x_row");
  text.add("mad.wide.u32 %x_address, %x_index, " + number(fragment.bytes) + ", %x_base");
}

// Moves one element between memory and its part of a register.
void move_element(Text& text, const WmmaFragment& fragment, uint32_t element, const std::string& space,
                  const std::string& register_name, bool loads) {
  const uint32_t part = element % fragment.per_register(), bits = 8 * fragment.bytes;
  const std::string type = ".b" + number(bits), address = "[%x_address]";
  if (bits >= 32)
    return text.add(loads ? "ld" + space + type + " " + register_name + ", " + address
                          : "st" + space + type + " " + address + ", " + register_name);
  if (!loads) {
    text.add("shr.u32 %x_word, " + register_name + ", " + number(part * bits));
    text.add("cvt.u16.u32 %x_half0, %x_word");
    return text.add("st" + space + type + " " + address + ", %x_half0");
  }
  text.add("ld" + space + type + " %x_half0, " + address);
  text.add("cvt.u32.u16 %x_word, %x_half0");
  if (bits == 8) text.add("and.b32 %x_word, %x_word, 255");
  if (!part) return text.add("mov.b32 " + register_name + ", %x_word");
  text.add("shl.b32 %x_word, %x_word, " + number(part * bits));
  text.add("or.b32 " + register_name + ", " + register_name + ", %x_word");
}

std::string expand_wmma(const Statement& s, const std::string& guard, uint32_t address_bytes) {
  const bool loads = s.has("load"), by_rows = s.has("row");
  const Operand &address = s.operands[loads ? 1 : 0], &registers = s.operands[loads ? 0 : 1];
  const WmmaFragment fragment = wmma_fragment(s.qualifier_of("a|b|c|d"), s.qualifier_of(kWmmaShapes), s.type());
  if (registers.kind != Operand::Vector || registers.parts.size() != fragment.registers) return "";
  const std::string_view given_space = s.qualifier_of("global|shared|shared::cta");
  const std::string space = given_space.empty() ? "" : "." + std::string(given_space);
  Text text(guard);
  set_base(text, address, address_bytes);
  text.add("mov.u32 %x_stride, " +
           (s.operands.size() > 2 ? std::string(s.operands[2].text) : number(by_rows ? fragment.columns : fragment.rows)));
  for (uint32_t element = 0; element < fragment.per_lane(); element++) {
    set_address(text, fragment, element, by_rows);
    move_element(text, fragment, element, space, std::string(registers.parts[element / fragment.per_register()].text), loads);
  }
  return text.finish();
}

// Lane 8 * k + r has the address of row r of matrix k, which has eight rows of eight elements of 16 bits.  A lane receives two
// neighbours of a row, or (trans) of a column.
std::string expand_ldmatrix(const Statement& s, const std::string& guard, uint32_t address_bytes) {
  const bool is_transposed = s.has("trans");
  const std::string_view count = s.qualifier_of("x1|x2|x4");
  const Operand& registers = s.operands[0];
  const uint32_t matrices = static_cast<uint32_t>(count[1] - '0');
  if (registers.kind != Operand::Vector || registers.parts.size() != matrices) return "";
  Text text(guard);
  set_base(text, s.operands[1], address_bytes);
  if (s.qualifier_of("shared|shared::cta").empty()) text.add("cvta.to.shared.u64 %x_base, %x_base");
  text.add("cvt.u32.u64 %x_stride, %x_base");
  text.add("and.b32 %x_row, %x_lane, 3"), text.add("shr.u32 %x_column, %x_lane, 2");
  if (is_transposed) text.add("shl.b32 %x_row, %x_row, 1"), text.add("shl.b32 %x_column, %x_column, 1");
  else text.add("shl.b32 %x_word, %x_row, 2"), text.add("mov.u32 %x_row, %x_column"), text.add("mov.u32 %x_column, %x_word");
  for (uint32_t matrix = 0; matrix < matrices; matrix++) {
    const std::string result(registers.parts[matrix].text);
    for (uint32_t half = 0; half < (is_transposed ? 2u : 1u); half++) {
      text.add("add.u32 %x_index, %x_row, " + number(8 * matrix + half));
      text.add("shfl.sync.idx.b32 %x_word, %x_stride, %x_index, 31, 0xffffffff");
      text.add("add.u32 %x_word, %x_word, %x_column");
      text.add(is_transposed ? "ld.shared.b16 %x_half" + number(half) + ", [%x_word]"
                             : "ld.shared.b32 " + result + ", [%x_word]");
    }
    if (is_transposed) text.add("mov.b32 " + result + ", {%x_half0, %x_half1}");
  }
  return text.finish();
}

// Transposes a matrix of 8 x 8 elements of 16 bits, of which each lane has two neighbours of a row.
std::string expand_movmatrix(const Statement& s, const std::string& guard, uint32_t) {
  if (s.operands[1].kind != Operand::Register) return "";
  Text text(guard);
  text.add("mov.u32 %x_lane, %laneid");
  text.add("mov.b32 %x_stride, " + std::string(s.operands[1].text));
  text.add("and.b32 %x_row, %x_lane, 3"), text.add("shr.u32 %x_column, %x_lane, 2");
  text.add("shr.u32 %x_index, %x_column, 1"), text.add("mad.lo.u32 %x_row, %x_row, 8, %x_index");  // the source lane
  text.add("and.b32 %x_column, %x_column, 1"), text.add("shl.b32 %x_column, %x_column, 4");        // the shift there
  for (uint32_t half = 0; half < 2; half++) {
    text.add("add.u32 %x_index, %x_row, " + number(4 * half));
    text.add("shfl.sync.idx.b32 %x_word, %x_stride, %x_index, 31, 0xffffffff");
    text.add("shr.u32 %x_word, %x_word, %x_column");
    text.add("cvt.u16.u32 %x_half" + number(half) + ", %x_word");
  }
  text.add("mov.b32 " + std::string(s.operands[0].text) + ", {%x_half0, %x_half1}");
  return text.finish();
}

// The value of a cache policy, which only hints of accesses use, and which have no effect here.
std::string expand_createpolicy(const Statement& s, const std::string& guard, uint32_t) {
  const bool is_whole = s.operands.size() == 1 || (s.operands[1].kind == Operand::Literal && s.operands[1].text == "1.0");
  if (!is_whole) return "";
  const char* policy = s.has("L2::evict_first")  ? "0x12f0000000000000"
                       : s.has("L2::evict_last") ? "0x14f0000000000000"
                                                 : "0x1000000000000000";
  return guard + "mov.b64 " + std::string(s.operands[0].text) + ", " + policy + ";";
}

}  // namespace

WmmaFragment wmma_fragment(std::string_view matrix, std::string_view shape, std::string_view type) {
  const uint32_t m = extent(shape, 'm'), n = extent(shape, 'n'), k = extent(shape, 'k');
  WmmaFragment fragment;
  fragment.rows = matrix == "b" ? k : m, fragment.columns = matrix == "a" ? k : n;
  fragment.bytes = type == "f64" ? 8 : type == "f16" || type == "bf16" ? 2 : type == "s8" || type == "u8" ? 1 : 4;
  const bool repeats = type == "f16" && (matrix == "a" || matrix == "b");  // eight registers in each shape
  fragment.registers = repeats ? 8 : fragment.rows * fragment.columns / 32 / fragment.per_register();
  return fragment;
}

Expand expand_function(const Statement& s) {
  static const std::map<std::string_view, Expand> functions = {{"createpolicy", expand_createpolicy},
                                                               {"ldmatrix", expand_ldmatrix},
                                                               {"movmatrix", expand_movmatrix},
                                                               {"wmma", expand_wmma}};
  const auto entry = functions.find(s.op);
  return entry == functions.end() || s.has("mma") ? nullptr : entry->second;
}

}  // namespace vgpu::ptx
