// The table of sm_80 instructions, with a row of instructions.def for each.  A row describes the encodings of an instruction, the
// bits of its modifiers and operands, and the function that converts it to an instruction of the core.  Bits that a row does not
// account for must be zero: an unknown encoding is rejected.
//
// INSTRUCTION(opcode, layout, forms, mnemonic, modifiers, operands, fixed, select)
//   layout     Plain: opcode has 12 bits.  Alu, Uniform: 9 bits, and bits 9 to 11 are the form: which operand lies in bits 32
//              to 63, and as what.  1: b, a register; 4, 5, 6: b, an immediate, a constant, a uniform register; 2, 3, 7: the
//              same of c, while b lies where c lies otherwise.
//   modifiers  bit{NAME}: printed (spelled) if it is set; bit:width{NAME|-|!|...}: by value, - is not spelled, ! is rejected;
//              several fields, the lowest first, are joined by +; {NAME} is always spelled.
//   operands   see OperandKind and the letters beside it; [bit] or [!bit] before one: present only if the bit is (not) set;
//              ? behind one: not spelled if it is PT, RZ, URZ or 0; .WORD behind a register's bit: a suffix that is spelled.
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
// Sets the core's instruction; returns false if the instruction is not supported.
using Select = bool (*)(FunctionDecoder&, const Decoded&, Instruction&);

struct Field { uint32_t at, width; };

struct Modifier {
  std::vector<Field> fields;  // empty: always spelled
  std::vector<std::string> names;  // by value; "": not spelled; "!": rejected

  uint32_t value(const Encoding& e) const;
  const std::string& name(const Encoding& e) const { return names[value(e)]; }
};

enum class OperandKind : uint8_t {
  Slot,  // a, b, c; w: bits 32 to 63.  With .neg, .real (|x| and -x), .not, .carry (-x, or ~x with .X),
  // .half (of two halves) or .part (a byte or a half of the register)
  Register,  // R@bit, R@bit.WORD; Rd: the register that is written, whose slot is d
  UniformRegister,  // UR@bit; URd
  Written,  // Pd@bit, UPd@bit: a predicate that is written
  Read,  // Ps@bit, UPs@bit: a predicate that is read, negated by the bit behind it; Pu@bit: uniform if the bit before it is set
  Number,  // N@bit:width
  Table,  // L: the first truth table of PLOP3, which has two fields
  ConvergenceBarrier,  // B@bit
  SpecialRegister,  // S@bit
  Target,  // T: the target of a branch; O: the same, as an offset to a register
  Mask,  // M: the mask of lanes of BRA.DIV
  Scoreboards,  // Q: the scoreboards of DEPBAR
  Address,  // [global32] ...: see AddressKind
  Text,  // =TEXT
};

// What an operand may have beside its register.
enum class Suffix : uint8_t {
  None,
  Negate,  // -x
  Real,  // -x and |x|
  Invert,  // ~x
  Carry,  // -x; ~x if the addition has a carry in (bit 74)
  Half,  // -x and |x|, and which half of the register it is (HalfPart)
  Part,  // which byte or half of the register it is
};

constexpr uint32_t kDescribedBit = 101;  // whether the descriptor of a global address is spelled

// The components of an address: a register (64 bits with .E or .64), an offset, and a uniform register.
enum class AddressKind : uint8_t {
  Plain,  // register and offset
  Global,  // the same, with a descriptor in a uniform register
  Reduction,
  Atomic,  // likewise, with other bits
  Shared,  // register with a scale, uniform register and offset
  Local,  // register, uniform register and offset
  AsyncTo,  // the destination of LDGSTS
  AsyncFrom,  // its source
  Constant,  // bank, register and offset
  UniformConstant,  // bank and offset
  IndexedUniformConstant,  // bank, uniform register and offset
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
  Encoding known;  // the bits that it accounts for, except those of slots, which depend on the form
  bool uniform_guard;
  Select select;
};

const std::vector<Row>& rows();
const Row* find_row(uint32_t opcode12);  // nullptr: no such row

}  // namespace vgpu::sm80
