// Decodes machine code to instructions of the core: guards, operands, constants, and the layout of the frame.
#include "function_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "launch_bank.h"
#include "register_use.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kCallRegisters = 8;  // the last register for arguments of calls, except a vector behind it
constexpr uint32_t kVector = 4;       // maximum number of consecutive registers of an operand
constexpr uint32_t kStackOfCalls = 4096;  // bytes of local memory in addition to the declared ones, if there are calls

// The number of registers of each kind that the code uses.
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
  void add(const Decoded& d, const Operand& operand) {
    const uint32_t value = operand.width && operand.width <= 32 ? d.bits(operand.at, operand.width) : 0;
    switch (operand.kind) {
      case OperandKind::Register: return add_register(value);
      case OperandKind::UniformRegister: return add_uniform(value);
      case OperandKind::ConvergenceBarrier: barriers = std::max(barriers, value + 1); return;
      case OperandKind::Mask: return add_uniform(d.bits(24, 6));
      case OperandKind::Address: return add_address(d, operand);
      default: return;
    }
  }
  void add_address(const Decoded& d, const Operand& operand) {
    if (operand.address == AddressKind::IndexedUniformConstant) return add_uniform(d.bits(24, 6));
    if (operand.address == AddressKind::UniformConstant) return;
    add_register(d.bits(operand.address == AddressKind::AsyncTo ? 16 : 24, 8));
    if (operand.at && d.bit(91)) add_uniform(d.bits(operand.at, 6));
  }
};

bool is_among(const std::string& mnemonic, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return mnemonic == name; });
}

}  // namespace

FunctionDecoder::FunctionDecoder(const Cubin::Function& function, const ConstantBanks& banks)
    : function_(function), banks_(banks) {
  if (function.code.size() > kMaxCodeBytes) throw Unsupported(function.name + ": too much machine code");
}

DecodedFunction FunctionDecoder::run() {
  try {
    decode_all();
    lay_out_frame();
    for (const Decoded& decoded : code_) emit(decoded);
    append_register_flows();
  } catch (const Unsupported& error) { throw Unsupported(function_.name + ": machine code, " + error.what()); }
  Instruction end;  // reached by running past the last instruction
  end.kind = InstructionKind::Trap, end.line = static_cast<uint32_t>(code_.size()) * kEncodingBytes;
  program_.code.push_back(end);
  return std::move(program_);
}

void FunctionDecoder::decode_all() {
  for (uint32_t offset = 0; offset + kEncodingBytes <= function_.code.size(); offset += kEncodingBytes) {
    Encoding encoding;
    std::memcpy(&encoding.low, function_.code.data() + offset, 8);
    std::memcpy(&encoding.high, function_.code.data() + offset + 8, 8);
    code_.push_back(decode(encoding, offset));
  }
}

// Returns the bytes of local memory: the declared stack, and more if there are calls, whose stack is not declared.
uint32_t FunctionDecoder::local_memory_bytes() const {
  bool has_calls = function_.has_callees, uses_local = false;
  for (const Decoded& decoded : code_) {
    has_calls |= is_among(decoded.row->mnemonic, {"CALL.REL.NOINC"});
    uses_local |= is_among(decoded.row->mnemonic, {"LDL", "STL"});
  }
  const uint32_t bytes = function_.stack_bytes + (has_calls && uses_local ? kStackOfCalls : 0);
  return (bytes + 15) / 16 * 16;
}

// Lays out special registers, predicates, a barrier's vote, a sink for writes to RZ, registers and uniform registers;
// then constants.
void FunctionDecoder::lay_out_frame() {
  RegisterCounts count;
  count.add_register(kCallRegisters);
  for (const Decoded& decoded : code_) {
    for (const Source* source : {&decoded.a, &decoded.b, &decoded.c}) count.add(*source);
    for (const Operand& operand : decoded.row->operands) count.add(decoded, operand);
  }
  predicates_ = kSpecialBytes;
  vote_ = predicates_ + kWarpRegisterBytes;
  sink_ = vote_ + 2 * kWarpRegisterBytes;
  registers_ = sink_ + kVector * kWarpRegisterBytes;
  uniforms_ = registers_ + count.plain * kWarpRegisterBytes;
  barriers_ = uniforms_ + count.uniform * kWarpRegisterBytes;
  program_.name = function_.name, program_.position_unit = "offset";
  program_.source_lines = function_.source_lines;
  program_.is_provable = program_.runs_in_lockstep = true;
  program_.register_bytes = barriers_ + count.barriers * kWarpRegisterBytes;
  zeros_ = append_constant_register(0);
  for (uint32_t k = 1; k < kVector; k++) append_constant_register(0);
  always_ = append_constant_register(kFullMask);
  program_.parameter_bytes = std::max(function_.parameter_base, kParameters) + function_.parameter_bytes;
  program_.shared_bytes = function_.shared_bytes, program_.shared_align = function_.shared_align;
  program_.shared_variables = {{"all variables", 0, program_.shared_bytes}};  // machine code does not describe them
  program_.local_bytes = local_memory_bytes();
}

// Adds a constant register, which has the word in each lane; returns its offset in the frame.
uint32_t FunctionDecoder::append_constant_register(uint32_t word) {
  const uint32_t offset = program_.register_bytes + static_cast<uint32_t>(program_.constants.size());
  program_.constants.resize(program_.constants.size() + kWarpRegisterBytes);
  std::fill_n(reinterpret_cast<uint32_t*>(program_.constants.data() + program_.constants.size() - kWarpRegisterBytes),
              kWarpSize, word);
  return offset;
}

uint32_t FunctionDecoder::constant_pair(uint64_t value) {
  const uint32_t low = append_constant_register(static_cast<uint32_t>(value));
  append_constant_register(static_cast<uint32_t>(value >> 32));
  return low;
}

uint32_t FunctionDecoder::constant(uint32_t word) {
  if (!word) return zeros_;
  const auto [entry, is_new] = words_.try_emplace(word, 0);
  if (is_new) entry->second = append_constant_register(word);
  return entry->second;
}

std::string_view FunctionDecoder::own_bank(uint32_t bank) const {
  const auto entry = function_.banks.find(bank);
  return entry == function_.banks.end() ? std::string_view() : entry->second;
}

uint32_t FunctionDecoder::bank_word(uint32_t bank, uint32_t offset) {
  const auto [entry, is_new] = bank_words_.try_emplace({bank, offset}, 0);
  if (!is_new) return entry->second;
  const uint32_t launch_words = parameter_block_bytes();
  if ((bank == 0 && offset + 4 <= launch_words) || (bank == 3 && offset + 4 <= banks_.variable_bytes)) {
    entry->second = append_constant_register(0);
    program_.launch_constants.push_back({entry->second, offset, bank == 3 ? banks_.variables + offset : nullptr});
    return entry->second;
  }
  std::string_view contents = own_bank(bank);
  if (bank == 4) contents = {reinterpret_cast<const char*>(banks_.addresses.data()), banks_.addresses.size()};
  if (bank == 0 || bank == 3 || offset + 4 > contents.size())
    throw Unsupported("constant bank " + std::to_string(bank) + " has no byte " + std::to_string(offset));
  uint32_t word;
  std::memcpy(&word, contents.data() + offset, sizeof word);
  return entry->second = append_constant_register(word);
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

// Both halves must be consecutive in the frame.
uint32_t FunctionDecoder::read_pair(const Source& source, WideImmediate extension) {
  if (source.kind != SourceKind::Immediate && source.kind != SourceKind::Constant) return read(source);
  const uint32_t word = source.number, sign = word >> 31 ? kFullMask : 0;
  if (source.kind == SourceKind::Immediate) {
    const uint32_t low = extension == WideImmediate::UpperHalf ? 0 : word;
    const uint32_t high = extension == WideImmediate::UpperHalf ? word : extension == WideImmediate::SignExtended ? sign : 0;
    const auto [entry, is_new] = pairs_.try_emplace({low, high}, 0);
    if (is_new) entry->second = append_constant_register(low), append_constant_register(high);
    return entry->second;
  }
  const uint64_t key = uint64_t(source.bank) << 32 | static_cast<uint32_t>(source.offset);
  const auto [entry, is_new] = pairs_.try_emplace({~uint64_t(0), key}, 0);
  if (!is_new) return entry->second;
  // Single words of the bank are not consecutive, so a pair gets its own copies.
  const std::pair<uint32_t, uint32_t> low{source.bank, source.offset}, high{source.bank, source.offset + 4};
  bank_words_.erase(low), bank_words_.erase(high);
  entry->second = bank_word(low.first, low.second);
  bank_word(high.first, high.second);
  return entry->second;
}

uint32_t FunctionDecoder::written_predicate(uint32_t number, bool uniform) const {
  return predicates(uniform) + 4 * number;  // the slot of PT is a sink; reads of PT use always()
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

// Sets the operands that all rows have in common; families set the others.
void FunctionDecoder::fill_operands(const Decoded& decoded, Instruction& i) {
  constexpr uint32_t kFirstWrittenBit = 81, kFirstReadBit = 87;
  i.vector_registers[kFirstWritten] = i.vector_registers[kSecondWritten] = written_predicate(kPT);
  i.e = i.vector_registers[kSecondRead] = always_;
  for (const Operand& operand : decoded.row->operands) {
    const uint32_t value = operand.width && operand.width <= 32 ? decoded.bits(operand.at, operand.width) : 0;
    switch (operand.slot) {
      case 'd': i.d = operand.uniform ? written_uniform(value) : written_register(value); break;
      case 'a': i.a = read(decoded.a); break;
      case 'b':
      case 'w': i.b = read(decoded.b); break;
      case 'c': i.c = read(decoded.c); break;
      default: break;
    }
    if (operand.kind == OperandKind::Written)
      i.vector_registers[operand.at == kFirstWrittenBit ? kFirstWritten : kSecondWritten] =
          written_predicate(value, operand.uniform);
    if (operand.kind != OperandKind::Read || !operand.is_present(decoded.encoding)) continue;
    const bool uniform = operand.uniform || (operand.text == "Pu" && decoded.bit(operand.at - 1));
    (operand.at == kFirstReadBit ? i.e : i.vector_registers[kSecondRead]) = read_predicate(value, uniform);
  }
}

void FunctionDecoder::append_register_flows() {
  for (const Decoded& decoded : code_) {
    RegisterUse use = register_use(decoded);
    RegisterFlow flow = {use.flow, std::move(use.reads), use.stored, std::move(use.writes)};
    for (auto* registers : {&flow.reads, &flow.writes})
      for (uint32_t& number : *registers) number = written_register(number);
    for (uint32_t number : use.predicate_reads) flow.reads.push_back(written_predicate(number));
    for (uint32_t number : use.predicate_writes) flow.writes.push_back(written_predicate(number));
    if (flow.flow == ValueFlow::Shuffle) flow.passed_reads = static_cast<uint32_t>(flow.reads.size());
    program_.flows.append(flow);
  }
  program_.flows.append(RegisterFlow());  // of the trap behind the code
}

void FunctionDecoder::emit(const Decoded& decoded) {
  Instruction i;
  i.line = decoded.offset;
  if (decoded.guard() != kPT || decoded.is_guard_negated()) {
    i.guard = static_cast<int32_t>(read_predicate(decoded.guard(), decoded.row->uniform_guard));
    i.negated = decoded.is_guard_negated();
  }
  fill_operands(decoded, i);
  bool is_supported = false;
  try {
    is_supported = decoded.row->select(*this, decoded, i);
  } catch (const Unsupported& error) {
    char position[32];
    std::snprintf(position, sizeof position, "offset 0x%x: ", decoded.offset);
    throw Unsupported(position + std::string(error.what()) + " in " + to_text(decoded) + " (" + to_hex(decoded.encoding) + ")");
  }
  if (!is_supported) {
    char position[32];
    std::snprintf(position, sizeof position, "offset 0x%x: ", decoded.offset);
    throw Unsupported(position + to_text(decoded) + " is not done here (" + to_hex(decoded.encoding) + ")");
  }
  program_.code.push_back(i);
}

}  // namespace vgpu::sm80
