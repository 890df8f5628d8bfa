// From a function's encodings to the core's instructions: where its registers lie in a warp's frame, and what each
// instruction's row selects.
//
// A uniform register is a register as any other here: each lane has its own copy, and they are the same where the code relies
// on it.  Constants, immediates and words of constant banks are registers, too, behind the others.
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
  std::vector<uint8_t> addresses;      // bank 4
};

// How a pair's upper half is had from an immediate of 32 bits.
enum class WideImmediate : uint8_t { UpperHalf, SignExtended, ZeroExtended };

constexpr uint32_t kRowBytes = kWarpSize * 4;  // of one register of all lanes
constexpr uint32_t kNegated = 1u << 31;        // of a predicate that is read

// What Instruction::vector_registers holds here: predicates that are written, a second one that is read (the first is e), and
// what a family keeps, such as the signs of operands.
enum VectorRegister : uint32_t { kFirstWritten, kSecondWritten, kSecondRead, kFlags };

class FunctionDecoder {
 public:
  FunctionDecoder(const Cubin::Function& function, const ConstantBanks& banks);

  // Unsupported, with the function, the offset and the bits of what is not known.
  DecodedFunction run();

  // For what a row selects.  Offsets into the frame of what is read and written; behind RZ lie four registers of zeros.
  uint32_t read_register(uint32_t number) const { return number == kRZ ? zeros_ : registers_ + number * kRowBytes; }
  uint32_t written_register(uint32_t number) const { return number == kRZ ? sink_ : registers_ + number * kRowBytes; }
  uint32_t read_uniform(uint32_t number) const { return number == kURZ ? zeros_ : uniforms_ + number * kRowBytes; }
  uint32_t written_uniform(uint32_t number) const { return number == kURZ ? sink_ : uniforms_ + number * kRowBytes; }
  uint32_t convergence_barrier(uint32_t number) const { return barriers_ + number * kRowBytes; }
  uint32_t read(const Source& source);
  uint32_t read_pair(const Source& source, WideImmediate how);
  uint32_t written_predicate(uint32_t number, bool uniform = false) const;
  uint32_t read_predicate(uint32_t number_and_negation, bool uniform = false) const;  // with kNegated
  uint32_t predicates(bool uniform) const { return predicates_ + (uniform ? 32 : 0); }  // the first of seven
  uint32_t always() const { return always_; }
  uint32_t vote() const { return vote_; }  // where a barrier of the block leaves a count, and behind it a predicate
  uint32_t vote_predicate() const { return vote_ + kRowBytes; }
  uint32_t constant(uint32_t word);  // the same in all lanes
  uint32_t constant_pair(uint64_t value);
  uint32_t bank_word(uint32_t bank, uint32_t offset);
  const ConstantBanks& banks() const { return banks_; }
  std::string_view own_bank(uint32_t bank) const;
  const std::vector<Decoded>& code() const { return code_; }
  uint32_t index_of(int64_t offset) const;  // of the instruction there; Unsupported: there is none
  uint32_t parameter_block_bytes() const { return (made_.parameter_bytes + 3) / 4 * 4; }

 private:
  void decode_all();
  void lay_out();
  void emit(const Decoded& one);
  void fill_operands(const Decoded& one, Instruction& i);
  uint32_t append_row(uint32_t word);
  uint32_t local_memory() const;

  const Cubin::Function& function_;
  const ConstantBanks& banks_;
  std::vector<Decoded> code_;
  DecodedFunction made_;
  uint32_t predicates_ = 0, vote_ = 0, sink_ = 0, registers_ = 0, uniforms_ = 0, barriers_ = 0, zeros_ = 0, always_ = 0;
  std::map<uint32_t, uint32_t> words_;                            // offsets of constants
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> bank_words_;  // by bank and offset
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> pairs_;
};

}  // namespace vgpu::sm80
