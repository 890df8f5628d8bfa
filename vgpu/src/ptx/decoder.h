// Decodes the tokens of a function's body to a DecodedFunction.  The instruction families (families/) decode the statements.
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arithmetic/rounding.h"
#include "constant.h"
#include "core/instruction_set.h"
#include "module.h"
#include "source_lines.h"

namespace vgpu {

// A variable of a module or function.
struct Symbol {
  enum Formal : uint8_t { None, Input, Result };
  ptx::StateSpace space;
  uint64_t address;  // of global and const variables; for shared and local ones an offset
  uint32_t size;
  uint32_t align = 1;
  bool dynamic = false;  // dynamic shared memory
  bool in_scratch = false;  // a parameter that a body declares, for its calls
  Formal formal = None;  // which parameter of the decoded function it is
};

// The addresses of the .const variables of a module, as [begin, end).
using ConstantRanges = std::vector<std::pair<uint64_t, uint64_t>>;

// The variables and functions of a module.
class SymbolTable {
 public:
  virtual ~SymbolTable() = default;
  virtual const Symbol* find(const std::string& name) const = 0;
  virtual const ptx::Function* function(const std::string& name) const = 0;
  virtual const ConstantRanges& constant_ranges() const = 0;  // valid as long as the module
  virtual std::string file_name(uint32_t) const { return ""; }  // of a number that .file declares; empty: unknown
  virtual bool guards_shared() const { return false; }  // whether guard gaps separate shared variables
};

// An operand as the text has it.
struct Operand {
  enum { Register, Literal, Address, Vector, Name } kind = Name;
  std::string_view text;       // without sign, brackets and braces
  ptx::Constant constant;      // of a literal, or the base of an address
  bool negative = false;       // `-%r1`, which only video instructions have
  bool inverted = false;       // `!%p`
  int64_t offset = 0;          // of an address, or added to a name
  bool is_real() const { return kind == Literal && constant.real(); }
  std::vector<Operand> parts;  // of {a, b}; of `d|p`; of an address `[a, b, c]` all but the first
};

// One statement: `@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];`
struct Statement {
  std::string_view op;                  // ld
  std::vector<std::string_view> qualifiers;  // global, v2, f32
  std::vector<Operand> operands;
  uint32_t line = 0;

  bool has(std::string_view qualifier) const;
  // Returns whether there are only `types` types and at most one qualifier of each group, such as "rn|rz|rm|rp".
  bool allows_only(std::initializer_list<std::string_view> groups, size_t types = 1) const;
  std::string_view qualifier_of(std::string_view group) const;  // the qualifier of the group; empty: none
  std::string_view type(size_t from_end = 0) const;  // the last qualifier, or counted from the end
};

RoundingMode rounding_mode_of(const Statement& s);

// Returns whether the qualifier is one of a group `a|b|c`.
bool is_in_group(std::string_view group, std::string_view qualifier);

// The kind of a register by its declared type, or of an operand in place of a register.
enum class Sort : uint8_t { Bits, Integer, Real, Predicate, Special, Literal };

// A register of the call frame; literals are registers, too.
struct RegisterSlot {
  uint32_t offset;
  uint32_t width;  // bytes per lane; 0: a predicate
  Sort sort = Sort::Bits;
  bool is_byte = false;  // declared with 8 bits: it has two bytes of the frame, but takes no instruction of 16 bits
};

constexpr uint32_t kStackBytes = 32u << 10;  // limit of a lane's alloca in one call
constexpr uint32_t kMaxStackAlign = 4096;
constexpr uint32_t kConstants = 1u << 30;  // preliminary offsets of constants, while a function is decoded

// Whether an operand is a register of the frame, neither a constant nor a special register.
constexpr bool is_frame_register(uint32_t offset) { return offset >= kSpecialBytes && offset < kConstants; }

class Decoder {
 public:
  // The memory of alloca, which is local memory: its offset, and the register that holds the bytes in use.
  struct Stack { uint32_t offset = 0, used_register = 0; };

  Decoder(const ptx::Function& function, const SymbolTable& symbols);

  DecodedFunction decode();

  // For the families; registers are byte offsets into the frame.  Sources may be literals; results are registers, or `_` if
  // `allows_sink`.
  RegisterSlot source_slot(const Operand& operand, std::string_view type);  // at least as wide as the type
  uint32_t source(const Operand& operand, std::string_view type);       // a source exactly as wide as the type
  // The lower and the upper half of a register of 128 bits, each as wide as b64.
  struct Halves { uint32_t lower, upper; };
  Halves source_halves(const Operand& operand);
  Halves result_halves(const Operand& operand);
  uint32_t predicate(const Operand& operand);                                  // a source; inverted for `!%p`
  bool is_predicate(const Operand& operand) const;                             // whether it is a predicate register
  RegisterSlot result_slot(const Operand& operand, std::string_view type);     // at least as wide as the type
  uint32_t result(const Operand& operand, std::string_view type, bool allows_sink = false);  // exactly as wide as the type
  uint32_t predicate_result(const Operand& operand, bool allows_sink = false);
  uint32_t constant(uint64_t bits, uint32_t width);                // the same in all lanes
  uint64_t bits(const Operand& literal, std::string_view type) const;
  uint32_t scratch_register(uint32_t width);                       // an unnamed register
  Stack stack(uint32_t align);                                     // with at least this alignment
  uint32_t scratch_memory(uint32_t bytes);                         // allocates scratch space for a call
  uint32_t carry_predicate();                                      // the carry flag (add.cc, addc)
  const Symbol* symbol(const std::string& name);                   // nullptr: not found
  const SymbolTable& symbols() const { return symbols_; }
  void emit(Instruction i);
  void jump(Instruction i, std::string_view label);                // sets imm to the label's position
  uint32_t branch_table(std::string_view label);                          // the number of a table of .branchtargets
  uint32_t call(CallSite site);                                    // adds a call site and returns its number
  const ptx::Function& function() const { return function_; }
  const ptx::Function* prototype(std::string_view label) const;    // of .callprototype or .calltargets; nullptr: not found
  uint64_t take_address(const ptx::Function& function);                    // the value of a pointer to it
  [[noreturn]] void reject(const Statement& s, const char* why = "an instruction that is not known") const;

 private:
  struct Scope {
    size_t number = 0;  // in order of their beginnings
    std::unordered_map<std::string, RegisterSlot> registers;
    std::unordered_map<std::string, Symbol> variables;
  };
  using Label = std::pair<size_t, std::string>;  // the scope that defines or uses it, and its name
  struct UnresolvedJump {
    size_t instruction;
    Label label;
    uint32_t line;
  };

  void decode_body();
  void enter_scope();
  void add_formals(const std::vector<ptx::Parameter>& parameters, Symbol::Formal formal);
  Label label_here(std::string_view name) const { return {scopes_.back().number, std::string(name)}; }
  template <class T> const T* find_visible(const std::map<Label, T>& definitions, Label use) const;
  void check_new_name(const std::string& name) const;
  // These parse tokens_[at, end) or tokens_[begin, end), and move `at` behind what they have parsed.
  void declare(size_t begin, size_t end);
  void declare_variable(const ptx::Declaration& declaration);
  void parse_pragma(size_t begin, size_t end) const;
  bool parse_label(size_t& at);
  void parse_guard(const Statement& s, size_t& at, size_t end);
  std::string_view parse_name_part(size_t& at, size_t end);
  void parse_name(Statement& s, size_t& at, size_t end);
  void parse_statement(size_t begin, size_t end);
  bool decode_expansion(const Statement& s, size_t begin, size_t name);
  Operand parse_operand(size_t& at, size_t end) const;
  Operand parse_single(size_t& at, size_t end) const;
  Operand parse_list(size_t& at, size_t end) const;
  Operand parse_address(size_t& at, size_t end) const;
  std::string_view text(size_t at, size_t end) const { return at < end ? tokens_[at].text : std::string_view(); }
  const RegisterSlot* find_register(std::string_view name) const;
  RegisterSlot slot_of(const Operand& operand, std::string_view type);         // as source_slot(), and notes nothing
  uint32_t slot_of_width(const Operand& operand, std::string_view type);       // as source(), likewise
  Halves halves_of(const Operand& operand);                                    // likewise
  void note_read(uint32_t offset) {
    if (is_frame_register(offset)) reads_.push_back(offset);
  }
  uint32_t note_written(uint32_t offset) { return writes_.push_back(offset), offset; }
  [[noreturn]] void reject_operand(const Operand& operand, const char* why) const;
  uint32_t add_register(uint32_t width);
  uint32_t reserve_in_frame(uint32_t bytes);  // in the call frame; returns the offset
  uint32_t reserve_shared(const std::string& name, uint32_t bytes, uint32_t align);
  void resolve_jumps();

  const ptx::Function& function_;
  const SymbolTable& symbols_;
  std::vector<ptx::Token> tokens_;  // without the outer braces
  std::vector<std::unique_ptr<const std::string>> made_texts_;  // into which tokens and names point
  DecodedFunction program_;
  ptx::SourceLines source_lines_;
  std::vector<Scope> scopes_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants_;  // (bits, width) to the offset among the constants
  std::vector<size_t> outer_{0};  // by number of a scope: number of the enclosing scope
  std::map<Label, size_t> labels_;
  std::vector<UnresolvedJump> jumps_;
  std::map<Label, std::vector<Label>> table_labels_;
  std::map<Label, uint32_t> table_numbers_;
  std::map<std::string, ptx::Function, std::less<>> prototypes_;
  uint32_t registers_end_;
  uint32_t carry_ = 0;  // 0: not allocated yet
  Stack stack_;         // likewise
  std::string_view statement_name_;                // of the current statement, such as add.f32
  std::vector<std::string_view> statement_names_;  // of the statement of each instruction
  Instruction pending_;  // guard and line of the current statement
  std::vector<uint32_t> reads_, writes_;  // registers that the family has asked for, as sources and as results
  std::vector<RegisterFlow> flows_;  // of each instruction: how values pass through its registers
};

}  // namespace vgpu
