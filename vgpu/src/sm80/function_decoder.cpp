// Makes the core's instructions of a function's encodings: guards, branch targets, operands.
#include "function_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "launch_bank.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kCallRegisters = 8;  // the last of those that hold arguments of calls, but for a vector behind it
constexpr uint32_t kVector = 4;       // registers that one instruction may take from the first on
constexpr uint32_t kStackOfCalls = 4096;  // bytes beside what the code declares, where functions are called
constexpr uint32_t kMaxCodeBytes = 1 << 26;

// How many registers of a kind the code needs.
struct RegisterCounts {
  uint32_t plain = 0, uniform = 0, barriers = 0;

  void add_register(uint32_t number) {
    if (number != kRZ) plain = std::max(plain, number + kVector);
  }
  void add_uniform(uint32_t number) {
    if (number != kURZ) uniform = std::max(uniform, number + 2);
  }
  void add(const Source& source) {
    if (source.kind == SourceKind::Register) add_register(source.number);
    if (source.kind == SourceKind::UniformRegister) add_uniform(source.number);
  }
  void add(const Decoded& d, const Operand& one) {
    const uint32_t value = one.width && one.width <= 32 ? d.bits(one.at, one.width) : 0;
    switch (one.kind) {
      case OperandKind::Register: return add_register(value);
      case OperandKind::UniformRegister: return add_uniform(value);
      case OperandKind::ConvergenceBarrier: barriers = std::max(barriers, value + 1); return;
      case OperandKind::Mask: return add_uniform(d.bits(24, 6));
      case OperandKind::Address: return add_address(d, one);
      default: return;
    }
  }
  void add_address(const Decoded& d, const Operand& one) {
    if (one.address == AddressKind::IndexedUniformConstant) return add_uniform(d.bits(24, 6));
    if (one.address == AddressKind::UniformConstant) return;
    add_register(d.bits(one.address == AddressKind::AsyncTo ? 16 : 24, 8));
    if (one.at && d.bit(91)) add_uniform(d.bits(one.at, 6));
  }
};

bool is_among(const std::string& mnemonic, std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](const char* one) { return mnemonic == one; });
}

}  // namespace

FunctionDecoder::FunctionDecoder(const Cubin::Function& function, const ConstantBanks& banks)
    : function_(function), banks_(banks) {
  if (function.code.size() > kMaxCodeBytes) throw Unsupported(function.name + ": too much machine code");
}

DecodedFunction FunctionDecoder::run() {
  try {
    decode_all();
    lay_out();
    for (const Decoded& one : code_) emit(one);
  } catch (const Unsupported& error) { throw Unsupported(function_.name + ": machine code, " + error.what()); }
  Instruction end;  // who comes here ran past the last instruction
  end.kind = InstructionKind::Trap, end.line = static_cast<uint32_t>(code_.size()) * kEncodingBytes;
  made_.code.push_back(end);
  return std::move(made_);
}

void FunctionDecoder::decode_all() {
  for (uint32_t at = 0; at + kEncodingBytes <= function_.code.size(); at += kEncodingBytes) {
    Encoding one;
    std::memcpy(&one.low, function_.code.data() + at, 8);
    std::memcpy(&one.high, function_.code.data() + at + 8, 8);
    code_.push_back(decode(one, at));
  }
}

// The stack that the code declares; and some more where its functions call each other, for then none is declared.
uint32_t FunctionDecoder::local_memory() const {
  bool calls = false, local = false;
  for (const Decoded& one : code_) {
    calls |= is_among(one.row->mnemonic, {"CALL.REL.NOINC"});
    local |= is_among(one.row->mnemonic, {"LDL", "STL"});
  }
  const uint32_t bytes = function_.stack_bytes + (calls && local ? kStackOfCalls : 0);
  return (bytes + 15) / 16 * 16;
}

// Special registers (the core's), predicates, the vote, a sink for what is written to RZ, registers; then constants.
void FunctionDecoder::lay_out() {
  RegisterCounts count;
  count.add_register(kCallRegisters);
  for (const Decoded& one : code_) {
    for (const Source* source : {&one.a, &one.b, &one.c}) count.add(*source);
    for (const Operand& operand : one.row->operands) count.add(one, operand);
  }
  predicates_ = kSpecialBytes;
  vote_ = predicates_ + kRowBytes;
  sink_ = vote_ + 2 * kRowBytes;
  registers_ = sink_ + kVector * kRowBytes;
  uniforms_ = registers_ + count.plain * kRowBytes;
  barriers_ = uniforms_ + count.uniform * kRowBytes;
  made_.name = function_.name, made_.position = "offset";
  made_.is_provable = made_.runs_in_lockstep = true;
  made_.register_bytes = barriers_ + count.barriers * kRowBytes;
  zeros_ = append_row(0);
  for (uint32_t k = 1; k < kVector; k++) append_row(0);
  always_ = append_row(kFullMask);
  made_.parameter_bytes = std::max(function_.parameter_base, kParameters) + function_.parameter_bytes;
  made_.shared_bytes = function_.shared_bytes, made_.shared_align = function_.shared_align;
  made_.shared_variables = {{"all variables", 0, made_.shared_bytes}};  // which are there is not known
  made_.local_bytes = local_memory();
}

uint32_t FunctionDecoder::append_row(uint32_t word) {
  const uint32_t offset = made_.register_bytes + static_cast<uint32_t>(made_.constants.size());
  made_.constants.resize(made_.constants.size() + kRowBytes);
  std::fill_n(reinterpret_cast<uint32_t*>(made_.constants.data() + made_.constants.size() - kRowBytes), kWarpSize, word);
  return offset;
}

uint32_t FunctionDecoder::constant_pair(uint64_t value) {
  const uint32_t low = append_row(static_cast<uint32_t>(value));
  append_row(static_cast<uint32_t>(value >> 32));
  return low;
}

uint32_t FunctionDecoder::constant(uint32_t word) {
  if (!word) return zeros_;
  const auto [known, added] = words_.try_emplace(word, 0);
  if (added) known->second = append_row(word);
  return known->second;
}

std::string_view FunctionDecoder::own_bank(uint32_t bank) const {
  const auto found = function_.banks.find(bank);
  return found == function_.banks.end() ? std::string_view() : found->second;
}

uint32_t FunctionDecoder::bank_word(uint32_t bank, uint32_t offset) {
  const auto [known, added] = bank_words_.try_emplace({bank, offset}, 0);
  if (!added) return known->second;
  const uint32_t launch_words = parameter_block_bytes();
  if ((bank == 0 && offset + 4 <= launch_words) || (bank == 3 && offset + 4 <= banks_.variable_bytes)) {
    known->second = append_row(0);
    made_.launch_constants.push_back({known->second, offset, bank == 3 ? banks_.variables + offset : nullptr});
    return known->second;
  }
  std::string_view held = own_bank(bank);
  if (bank == 4) held = {reinterpret_cast<const char*>(banks_.addresses.data()), banks_.addresses.size()};
  if (bank == 0 || bank == 3 || offset + 4 > held.size())
    throw Unsupported("constant bank " + std::to_string(bank) + " has no byte " + std::to_string(offset));
  uint32_t word;
  std::memcpy(&word, held.data() + offset, sizeof word);
  return known->second = append_row(word);
}

uint32_t FunctionDecoder::read(const Source& source) {
  switch (source.kind) {
    case SourceKind::Register: return read_register(source.number);
    case SourceKind::UniformRegister: return read_uniform(source.number);
    case SourceKind::Immediate: return constant(source.number);
    case SourceKind::Constant: return bank_word(source.bank, static_cast<uint32_t>(source.offset));
    case SourceKind::None: break;
  }
  return zeros_;
}

// Both halves must lie one behind the other.
uint32_t FunctionDecoder::read_pair(const Source& source, WideImmediate how) {
  if (source.kind != SourceKind::Immediate && source.kind != SourceKind::Constant) return read(source);
  const uint32_t word = source.number, sign = word >> 31 ? kFullMask : 0;
  if (source.kind == SourceKind::Immediate) {
    const uint32_t low = how == WideImmediate::UpperHalf ? 0 : word;
    const uint32_t high = how == WideImmediate::UpperHalf ? word : how == WideImmediate::SignExtended ? sign : 0;
    const auto [known, added] = pairs_.try_emplace({low, high}, 0);
    if (added) known->second = append_row(low), append_row(high);
    return known->second;
  }
  const uint64_t place = uint64_t(source.bank) << 32 | static_cast<uint32_t>(source.offset);
  const auto [known, added] = pairs_.try_emplace({~uint64_t(0), place}, 0);
  if (!added) return known->second;
  // Words of the bank that were asked for alone lie elsewhere: this pair has its own.
  const std::pair<uint32_t, uint32_t> low{source.bank, source.offset}, high{source.bank, source.offset + 4};
  bank_words_.erase(low), bank_words_.erase(high);
  known->second = bank_word(low.first, low.second);
  bank_word(high.first, high.second);
  return known->second;
}

uint32_t FunctionDecoder::written_predicate(uint32_t number, bool uniform) const {
  return predicates(uniform) + 4 * number;  // PT's place is a sink: who reads PT reads always()
}

uint32_t FunctionDecoder::read_predicate(uint32_t number_and_negation, bool uniform) const {
  const uint32_t number = number_and_negation & 7;
  return (number == kPT ? always_ : predicates(uniform) + 4 * number) | (number_and_negation & 8 ? kNegated : 0);
}

uint32_t FunctionDecoder::index_of(int64_t offset) const {
  const int64_t end = static_cast<int64_t>(code_.size()) * kEncodingBytes;
  if (offset < 0 || offset > end || offset % kEncodingBytes) throw Unsupported("a branch to no instruction");
  return static_cast<uint32_t>(offset / kEncodingBytes);
}

// What each row has in common; families do the rest.
void FunctionDecoder::fill_operands(const Decoded& one, Instruction& i) {
  constexpr uint32_t kFirstWrittenBit = 81, kFirstReadBit = 87;
  i.vector_registers[kFirstWritten] = i.vector_registers[kSecondWritten] = written_predicate(kPT);
  i.e = i.vector_registers[kSecondRead] = always_;
  for (const Operand& operand : one.row->operands) {
    const uint32_t value = operand.width && operand.width <= 32 ? one.bits(operand.at, operand.width) : 0;
    switch (operand.slot) {
      case 'd': i.d = operand.uniform ? written_uniform(value) : written_register(value); break;
      case 'a': i.a = read(one.a); break;
      case 'b':
      case 'w': i.b = read(one.b); break;
      case 'c': i.c = read(one.c); break;
      default: break;
    }
    if (operand.kind == OperandKind::Written)
      i.vector_registers[operand.at == kFirstWrittenBit ? kFirstWritten : kSecondWritten] =
          written_predicate(value, operand.uniform);
    if (operand.kind != OperandKind::Read || !operand.is_present(one.encoding)) continue;
    const bool uniform = operand.uniform || (operand.text == "Pu" && one.bit(operand.at - 1));
    (operand.at == kFirstReadBit ? i.e : i.vector_registers[kSecondRead]) = read_predicate(value, uniform);
  }
}

void FunctionDecoder::emit(const Decoded& one) {
  Instruction i;
  i.line = one.offset;
  if (one.guard() != kPT || one.is_guard_negated()) {
    i.guard = static_cast<int32_t>(read_predicate(one.guard(), one.row->uniform_guard));
    i.negated = one.is_guard_negated();
  }
  fill_operands(one, i);
  bool done = false;
  try {
    done = one.row->select(*this, one, i);
  } catch (const Unsupported& error) {
    char at[32];
    std::snprintf(at, sizeof at, "offset 0x%x: ", one.offset);
    throw Unsupported(at + std::string(error.what()) + " in " + to_text(one) + " (" + to_hex(one.encoding) + ")");
  }
  if (!done) {
    char at[32];
    std::snprintf(at, sizeof at, "offset 0x%x: ", one.offset);
    throw Unsupported(at + to_text(one) + " is not done here (" + to_hex(one.encoding) + ")");
  }
  made_.code.push_back(i);
}

}  // namespace vgpu::sm80
