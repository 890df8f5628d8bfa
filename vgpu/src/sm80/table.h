// The instructions of sm_80 as data: a row of one of the .def files each.  A row says which encodings it stands for, how
// modifiers and operands lie in them, and which function makes the core's instruction of it.  A bit that no part of the
// row accounts for must be zero: an encoding with another meaning is refused, not guessed.
//
// INSTRUCTION(opcode, layout, forms, mnemonic, modifiers, operands, fixed, select)
//   layout     Plain: opcode has 12 bits.  Alu, Uniform: 9 bits, and bits 9 to 11 are the form: which operand lies in bits 32
//              to 63, and as what.  1: b, a register; 4, 5, 6: b, an immediate, a constant, a uniform register; 2, 3, 7: the
//              same of c, while b lies where c lies otherwise.
//   modifiers  bit{NAME}: spelt where the bit is set; bit:width{NAME|-|!|...}: by its value, - spells nothing, ! is refused;
//              several fields, the lowest first, are joined by +; {NAME} is always spelt.
//   operands   see OperandKind and the letters beside it; [bit] or [!bit] before one: there only where the bit is (not) set;
//              ? behind a predicate: not spelt where it is PT; .WORD behind a register's bit: spelt behind it.
//   fixed      bit:width=value
#pragma once
#include <string>
#include <vector>

#include "encoding.h"

namespace vgpu {
struct Instruction;
}

namespace vgpu::sm80 {

struct Decoded;
class FunctionDecoder;
// Sets what the instruction does; false: this is not done here.
using Select = bool (*)(FunctionDecoder&, const Decoded&, Instruction&);

struct Field { uint32_t at, width; };

struct Modifier {
  std::vector<Field> fields;  // none: always spelt
  std::vector<std::string> names;  // empty: nothing is spelt; "!": refused

  uint32_t value(const Encoding& e) const;
  const std::string& name(const Encoding& e) const { return names[value(e)]; }
};

enum class OperandKind : uint8_t {
  Slot,          // a, b, c; w: what bits 32 to 63 hold.  With .neg, .real (|x| and -x), .not, .carry (-x, or ~x with .X),
                 // .half (of two halves) or .part (a byte or a half of the register)
  Register,         // R@bit, R@bit.WORD; Rd: the one that is written, whose slot is d
  UniformRegister,  // UR@bit; URd
  Written,       // Pd@bit, UPd@bit: a predicate that is written
  Read,  // Ps@bit, UPs@bit: one that is read, which the bit behind it negates; Pu@bit: uniform with the bit before it
  Number,  // N@bit:width
  Table,  // L: the first truth table of PLOP3, which lies in two pieces
  ConvergenceBarrier,  // B@bit
  SpecialRegister,  // S@bit
  Target,  // T: where a branch leads to; O: the same as an offset beside a register
  Mask,  // M: the lanes that BRA.DIV asks for
  Scoreboards,  // Q: what DEPBAR waits for
  Address,  // [global32] ...: see AddressKind
  Text,  // =TEXT
};

enum class Suffix : uint8_t { None, Negate, Real, Invert, Carry, Half, Part };

constexpr uint32_t kDescribedBit = 101;  // the descriptor of an address of global memory is spelt

// Where memory is named: a register (of 64 bits where .E or .64 says so), an offset, and a uniform register.
enum class AddressKind : uint8_t {
  Plain,  // register and offset
  Global,  // the same, with a descriptor in a uniform register
  Reduction,
  Atomic,  // likewise; the bits lie elsewhere
  Shared,  // register with a scale, uniform register and offset
  Local,  // register, uniform register and offset
  AsyncTo,
  AsyncFrom,  // of LDGSTS
  Constant,
  UniformConstant,
  IndexedUniformConstant,  // bank and offset; with a register, without, with a uniform one
};

struct Operand {
  OperandKind kind = OperandKind::Text;
  Suffix suffix = Suffix::None;
  AddressKind address = AddressKind::Plain;
  char slot = 0;  // a, b, c, w or d
  bool uniform = false, optional = false;
  uint32_t at = 0, width = 0;
  struct Condition {
    uint32_t bit;
    bool set;
  };
  std::vector<Condition> conditions;
  std::string text;

  bool is_present(const Encoding& e) const;
};

enum class Layout : uint8_t { Plain, Alu, Uniform };

struct Row {
  uint32_t opcode;
  Layout layout;
  std::string forms, mnemonic;
  std::vector<Modifier> modifiers;
  std::vector<Operand> operands;
  struct Fixed {
    Field field;
    uint64_t value;
  };
  std::vector<Fixed> fixed;
  Encoding known;  // the bits that it accounts for, but those of slots, which depend on the form
  bool uniform_guard;
  Select select;
};

const std::vector<Row>& rows();
const Row* find_row(uint32_t opcode12);  // nullptr: there is none

}  // namespace vgpu::sm80
