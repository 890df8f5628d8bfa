// Decodes a function's machine code to a DecodedFunction, and lays out its registers in a warp's call frame.
//
// Uniform registers are stored like other registers, with a copy for each lane; the copies are equal where the code relies on it.
// Constants, immediates and words of constant banks are stored as registers behind the others.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/instruction_set.h"
#include "decoded.h"
#include "image/cubin.h"

namespace vgpu::sm80 {

// The constant banks of a loaded module.
struct ConstantBanks {
  const uint8_t* variables = nullptr;  // bank 3, in the device's memory
  uint32_t variable_bytes = 0;
  std::vector<uint8_t> addresses;  // bank 4
};

// How a 32-bit immediate is extended to a pair of registers.
enum class WideImmediate : uint8_t { UpperHalf, SignExtended, ZeroExtended };

constexpr uint32_t kMaxCodeBytes = 1 << 26;  // of a function
constexpr uint32_t kWarpRegisterBytes = kWarpSize * 4;  // one register of all lanes
constexpr uint32_t kNegated = 1u << 31;  // flag in the offset of a predicate that is read

// The use of Instruction::vector_registers: two predicates that are written, a second one that is read (the first is e), and flags
// of the family, such as the signs of operands.
enum VectorRegister : uint32_t { kFirstWritten, kSecondWritten, kSecondRead, kFlags };

class FunctionDecoder {
 public:
  FunctionDecoder(const Cubin::Function& function, const ConstantBanks& banks);

  // Throws Unsupported, with the function, the offset and the bits, for unsupported code.
  DecodedFunction run();

  // For the families (families/), which set operands of instructions.  These return offsets into the frame of registers that
  // are read or written.  RZ can be read as up to four registers of zeros.
  uint32_t read_register(uint32_t number) const { return number == kRZ ? zeros_ : registers_ + number * kWarpRegisterBytes; }
  uint32_t written_register(uint32_t number) const { return number == kRZ ? sink_ : registers_ + number * kWarpRegisterBytes; }
  uint32_t read_uniform(uint32_t number) const { return number == kURZ ? zeros_ : uniforms_ + number * kWarpRegisterBytes; }
  uint32_t written_uniform(uint32_t number) const { return number == kURZ ? sink_ : uniforms_ + number * kWarpRegisterBytes; }
  uint32_t convergence_barrier(uint32_t number) const { return barriers_ + number * kWarpRegisterBytes; }
  uint32_t read(const Source& source);
  uint32_t read_pair(const Source& source, WideImmediate how);
  uint32_t written_predicate(uint32_t number, bool uniform = false) const;
  uint32_t read_predicate(uint32_t number_and_negation, bool uniform = false) const;  // may include kNegated
  uint32_t predicates(bool uniform) const { return predicates_ + (uniform ? 32 : 0); }  // offset of the first of seven
  uint32_t always() const { return always_; }  // a predicate that is true
  uint32_t vote() const { return vote_; }  // result of a barrier: a count, and behind it a predicate
  uint32_t vote_predicate() const { return vote_ + kWarpRegisterBytes; }
  uint32_t constant(uint32_t word);  // the same in all lanes
  uint32_t constant_pair(uint64_t value);
  uint32_t bank_word(uint32_t bank, uint32_t offset);
  const ConstantBanks& banks() const { return banks_; }
  bool has_callees() const { return function_.has_callees; }
  std::string_view own_bank(uint32_t bank) const;  // of this function alone; empty: none
  const std::vector<Decoded>& code() const { return code_; }
  uint32_t index_of(int64_t offset) const;  // of the instruction; throws Unsupported if there is none
  uint32_t parameter_block_bytes() const { return (program_.parameter_bytes + 3) / 4 * 4; }

 private:
  void decode_all();
  void lay_out_frame();
  void emit(const Decoded& decoded);
  void fill_operands(const Decoded& decoded, Instruction& i);
  void append_register_flows();
  uint32_t append_constant_register(uint32_t word);  // adds a constant register
  uint32_t local_memory_bytes() const;

  const Cubin::Function& function_;
  const ConstantBanks& banks_;
  std::vector<Decoded> code_;
  DecodedFunction program_;
  uint32_t predicates_ = 0, vote_ = 0, sink_ = 0, registers_ = 0, uniforms_ = 0, barriers_ = 0, zeros_ = 0, always_ = 0;
  std::map<uint32_t, uint32_t> words_;  // constants to offsets
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> bank_words_;  // (bank, offset) to offset in the frame
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> pairs_;  // (low, high), or (~0, bank and offset), to offset in the frame
};

}  // namespace vgpu::sm80
