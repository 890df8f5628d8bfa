// Derives the use of registers from the rows of instructions.def, and the number of registers of an operand from modifiers.
#include "register_use.h"

#include <algorithm>
#include <array>

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kPredicates = 7;
constexpr uint32_t kFirstArgument = 4, kArgumentRegisters = 12;  // of a call of another function; others are in memory

bool is_named(const Decoded& d, const char* mnemonic) { return d.row->mnemonic == mnemonic; }

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Stores name their address before the value.
bool is_store(const Decoded& d) { return is_named(d, "ST") || is_named(d, "STG") || is_named(d, "STS") || is_named(d, "STL"); }

// Instructions that write uniform registers, which RegisterUse does not name, are Other: their values are not followed.
// BSSY names only a convergence barrier, which holds no lane's value.
ValueFlow flow_of(const Decoded& d) {
  if (is_named(d, "SHFL")) return ValueFlow::Shuffle;
  const bool has_uniform_offset = d.bit(91);
  if (is_named(d, "LDL") && !has_uniform_offset) return ValueFlow::LocalLoad;
  if (is_named(d, "STL")) return has_uniform_offset ? ValueFlow::Other : ValueFlow::LocalStore;
  if (is_store(d)) return ValueFlow::Store;
  const bool is_lanewise = d.row->layout == Layout::Alu || is_named(d, "PLOP3.LUT") || is_named(d, "BSSY");
  return is_lanewise ? ValueFlow::Lanewise : ValueFlow::Other;
}

uint32_t registers_of_type(std::string_view type) { return ends_with(type, "64") ? 2 : 1; }

// The number of registers of a result or of the operand in a slot (a, b, c, w or d) of arithmetic.
uint32_t registers_of_slot(const Decoded& d, char slot) {
  const bool is_result = slot == 'd';
  if (is_named(d, "IMAD.WIDE")) return is_result || slot == 'c' ? 2 : 1;
  if (is_named(d, "IMAD.HI")) return slot == 'c' ? 2 : 1;
  if (is_named(d, "F2F")) return registers_of_type(d.modifier(is_result ? 75 : 84));
  if (is_named(d, "F2I")) return registers_of_type(d.modifier(is_result ? 72 : 84));
  if (is_named(d, "I2F")) return registers_of_type(d.modifier(is_result ? 75 : 74));
  if (is_named(d, "FRND")) return registers_of_type(d.modifier(75));
  return d.row->mnemonic[0] == 'D' && d.row->layout == Layout::Alu ? 2 : 1;
}

// The number of registers of the type that an access to memory, an atomic or a match names.
uint32_t registers_of_access(const Decoded& d) {
  if (d.has("128")) return 4;
  constexpr std::array<const char*, 4> kWide = {"64", "S64", "U64", "F64.RN"};
  return std::any_of(kWide.begin(), kWide.end(), [&](const char* type) { return d.has(type); }) ? 2 : 1;
}

// The number of registers of an operand R@bit, whose register has its number in fixed bits; at most this many of a matrix.
uint32_t registers_of_operand(const Decoded& d) {
  if (ends_with(d.row->mnemonic, "MMA")) return 4;
  const bool is_code_address = std::any_of(d.row->operands.begin(), d.row->operands.end(),
                                           [](const Operand& operand) { return operand.kind == OperandKind::Target; });
  return is_code_address || is_named(d, "CALL.ABS.NOINC") ? 2 : registers_of_access(d);
}

class UseBuilder {
 public:
  explicit UseBuilder(const Decoded& decoded) : decoded_(decoded) {}

  RegisterUse run() {
    use_.flow = flow_of(decoded_);
    for (const Operand& operand : decoded_.row->operands)
      if (operand.is_present(decoded_.encoding)) add(operand);
    if (is_named(decoded_, "P2R"))
      for (uint32_t number = 0; number < kPredicates; number++) use_.predicate_reads.push_back(number);
    if (is_named(decoded_, "CALL.ABS.NOINC")) add_registers(use_.reads, kFirstArgument, kArgumentRegisters);
    return std::move(use_);
  }

 private:
  void add(const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::Slot: return add_source(operand);
      case OperandKind::Register: return add_register(operand);
      case OperandKind::Written: return add_predicate(use_.predicate_writes, operand);
      case OperandKind::Read: return add_predicate(use_.predicate_reads, operand);
      case OperandKind::Address: return add_address(operand);
      default: return;
    }
  }

  static void add_registers(std::vector<uint32_t>& numbers, uint32_t first, uint32_t count) {
    if (first == kRZ) return;
    for (uint32_t k = 0; k < count; k++) numbers.push_back(first + k);
  }

  void add_source(const Operand& operand) {
    const Source& source = operand.slot == 'a' ? decoded_.a : operand.slot == 'c' ? decoded_.c : decoded_.b;
    if (source.kind == SourceKind::Register)
      add_registers(use_.reads, source.number, registers_of_slot(decoded_, operand.slot));
  }

  void add_register(const Operand& operand) {
    const uint32_t number = decoded_.bits(operand.at, operand.width);
    if (operand.slot != 'd') {
      const size_t before = use_.reads.size();
      add_registers(use_.reads, number, registers_of_operand(decoded_));
      if (is_store(decoded_)) use_.stored = static_cast<uint32_t>(use_.reads.size() - before);
      return;
    }
    const bool is_arithmetic = decoded_.row->layout != Layout::Plain;
    add_registers(use_.writes, number, is_arithmetic ? registers_of_slot(decoded_, 'd') : registers_of_result());
  }

  // Of a result that is not arithmetic's: no more than are surely written.
  uint32_t registers_of_result() const {
    const auto& operands = decoded_.row->operands;
    const bool accesses_memory = std::any_of(operands.begin(), operands.end(),
                                             [](const Operand& operand) { return operand.kind == OperandKind::Address; });
    return accesses_memory && !is_named(decoded_, "LDSM") && !is_named(decoded_, "QSPC") ? registers_of_access(decoded_) : 1;
  }

  // Pu: uniform if the bit before it is set.
  void add_predicate(std::vector<uint32_t>& numbers, const Operand& operand) {
    const bool is_uniform = operand.uniform || (operand.text == "Pu" && decoded_.bit(operand.at - 1));
    const uint32_t number = decoded_.bits(operand.at, 3);
    if (!is_uniform && number != kPT) numbers.push_back(number);
  }

  void add_address(const Operand& operand) {
    switch (operand.address) {
      case AddressKind::UniformConstant:
      case AddressKind::IndexedUniformConstant: return;
      case AddressKind::AsyncTo: return add_registers(use_.reads, decoded_.bits(16, 8), 1);
      case AddressKind::Shared:
      case AddressKind::Local:
      case AddressKind::Constant: return add_registers(use_.reads, decoded_.bits(24, 8), 1);
      default: return add_registers(use_.reads, decoded_.bits(24, 8), 2);
    }
  }

  const Decoded& decoded_;
  RegisterUse use_;
};

std::string join(char file, const std::vector<uint32_t>& numbers) {
  std::string text;
  for (uint32_t number : numbers) text += file + std::to_string(number) + " ";
  return text;
}

}  // namespace

RegisterUse register_use(const Decoded& decoded) { return UseBuilder(decoded).run(); }

std::string to_text(const RegisterUse& use) {
  const bool is_followed = use.flow == ValueFlow::Lanewise || use.flow == ValueFlow::Shuffle;
  return (is_followed ? "= " : "") + join('R', use.writes) + join('P', use.predicate_writes) + "< " + join('R', use.reads) +
         join('P', use.predicate_reads);
}

}  // namespace vgpu::sm80
