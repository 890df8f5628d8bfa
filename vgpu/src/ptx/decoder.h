// From the tokens of a function's body to a Program.  Each instruction family decodes its own (the other files here).
#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arithmetic/rounding.h"
#include "constant.h"
#include "core/instruction_set.h"
#include "module.h"

namespace vgpu {

// A module's variables as they lie in memory; see loaded_module.h.
struct Symbol {
  ptx::StateSpace space;
  uint64_t address;  // of global and const ones; of shared and local ones an offset
  uint32_t size;
  uint32_t align = 1;
  bool dynamic = false;  // shared memory that comes with the launch
};

class SymbolTable {
 public:
  virtual ~SymbolTable() = default;
  virtual const Symbol* find(const std::string& name) const = 0;
  virtual const ptx::Function* function(const std::string& name) const = 0;
  virtual bool guards_shared() const { return false; }  // room between shared variables that is nobody's
};

// An operand as it is written.
struct Operand {
  enum { Register, Literal, Address, Vector, Name } kind = Name;
  std::string_view text;       // without sign, brackets and braces
  ptx::Constant constant;      // of a literal, or of an address that begins with one
  bool negative = false;       // `-%r1`, which only video instructions have
  bool inverted = false;       // `!%p`
  int64_t offset = 0;          // of an address, or behind a name
  std::vector<Operand> parts;  // of {a, b}; of `d|p` both; of an address `[a, b, c]` those behind the first
};

// One statement: `@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];`
struct Statement {
  std::string_view op;                  // ld
  std::vector<std::string_view> qualifiers;  // global, v2, f32
  std::vector<Operand> operands;
  uint32_t line = 0;

  bool has(std::string_view word) const;
  // No words but `types` types and, of each group such as "rn|rz|rm|rp", at most one.
  bool allows_only(std::initializer_list<std::string_view> groups, size_t types = 1) const;
  std::string_view qualifier_of(std::string_view group) const;  // the word of the group that there is; empty: none
  std::string_view type(size_t from_end = 0) const;  // the last word, the one before, ...
};

RoundingMode rounding_mode_of(const Statement& s);

// Is the word one of `a|b|c`?
bool is_in_group(std::string_view group, std::string_view word);

// What a register was declared as, or what stands where one could.
enum class Sort : uint8_t { Bits, Integer, Real, Predicate, Special, Literal };

// A register, or a literal that became one.
struct RegisterSlot {
  uint32_t offset;
  uint32_t width;  // bytes of a lane; 0 of a predicate
  Sort sort = Sort::Bits;
};

constexpr uint32_t kStackBytes = 32u << 10;  // of a lane's alloca in one call: a card's default is 1 KiB for all calls
constexpr uint32_t kMaxStackAlign = 4096;

class Decoder {
 public:
  // Where alloca takes its memory: among the local variables, as full as a register of its own says.
  struct Stack { uint32_t offset = 0, full = 0; };

  Decoder(const ptx::Function& function, const SymbolTable& symbols);

  DecodedFunction decode();

  // For the families.  What is read may be a literal; what is written is a register, or `_` where `sink` is taken.
  RegisterSlot source_operand(const Operand& operand, std::string_view type);         // a value of at least the type's width
  uint32_t exact_operand(const Operand& operand, std::string_view type);   // of the type's very width
  uint32_t predicate(const Operand& operand);                      // its bits, inverted where it says so
  RegisterSlot written(const Operand& operand, std::string_view type);     // a register of at least the type's width
  uint32_t result(const Operand& operand, std::string_view type, bool sink = false);  // of its very width
  uint32_t predicate_result(const Operand& operand);
  uint32_t constant(uint64_t bits, uint32_t width);                // the same in all lanes
  uint64_t bits(const Operand& literal, std::string_view type) const;
  uint32_t scratch_register(uint32_t width);                       // one that no name has
  Stack stack(uint32_t align);                                     // at least so aligned
  uint32_t scratch_memory(uint32_t bytes);                         // of the scratch space: for a call
  uint32_t carry_predicate();                                                // the predicate of sums with carry
  const Symbol* symbol(const std::string& name);                   // nullptr: none
  const SymbolTable& symbols() const { return symbols_; }
  void emit(Instruction i);
  void jump(Instruction i, std::string_view label);                // imm becomes where the label stands
  uint32_t branch_table(std::string_view label);                          // of .branchtargets
  uint32_t call(CallSite site);
  const ptx::Function& function() const { return function_; }
  const ptx::Function* prototype(std::string_view label) const;    // of .callprototype or .calltargets; nullptr: none
  uint64_t take_address(const ptx::Function& function);                    // its address, as a pointer to it has it
  [[noreturn]] void reject(const Statement& s, const char* why = "an instruction that is not known") const;

 private:
  struct Scope {
    size_t number = 0;  // of all that there have been
    std::unordered_map<std::string, RegisterSlot> registers;
    std::unordered_map<std::string, Symbol> variables;
  };
  using Label = std::pair<size_t, std::string>;  // the scope that it stands in, or is asked for in; its name
  struct UnresolvedJump {
    size_t at;
    Label label;
    uint32_t line;
  };

  void body();
  void enter();
  void add_formals(const std::vector<ptx::Parameter>& formals);
  Label here(std::string_view name) const { return {scopes_.back().number, std::string(name)}; }
  template <class T> const T* visible(const std::map<Label, T>& among, Label wanted) const;
  void take_name(const std::string& name) const;
  void declare(size_t from, size_t to);
  void variable(const ptx::Declaration& one);
  void pragma(size_t from, size_t to) const;
  bool label(size_t& at);
  void statement(size_t from, size_t to);
  Operand operand(size_t& at, size_t to) const;
  Operand single(size_t& at, size_t to) const;
  Operand list(size_t& at, size_t to) const;
  Operand address(size_t& at, size_t to) const;
  std::string_view text(size_t at, size_t to) const { return at < to ? tokens_[at].text : std::string_view(); }
  bool casts(size_t at, size_t to) const;
  const RegisterSlot* find_register(std::string_view name) const;
  [[noreturn]] void reject_operand(const Operand& operand, const char* why) const;
  uint32_t add_register(uint32_t width);
  uint32_t reserve_local(uint32_t bytes);
  uint32_t reserve_shared(const std::string& name, uint32_t bytes, uint32_t align);
  void resolve();

  const ptx::Function& function_;
  const SymbolTable& symbols_;
  const std::vector<ptx::Token> tokens_;  // without the outer braces
  DecodedFunction program_;
  std::vector<Scope> scopes_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants_;  // bits, width: where among the constants
  std::vector<size_t> outer_{0};  // by a scope's number: of the scope around it
  std::map<Label, size_t> labels_;
  std::vector<UnresolvedJump> jumps_;
  std::map<Label, std::vector<Label>> table_labels_;
  std::map<Label, uint32_t> table_numbers_;
  std::map<std::string, ptx::Function, std::less<>> prototypes_;
  uint32_t registers_end_;
  uint32_t carry_ = 0;  // 0: none yet
  Stack stack_;         // likewise
  std::string_view statement_name_;                // of the statement under way, as its text has it
  std::vector<std::string_view> statement_names_;  // of each instruction's
  Instruction pending_;  // guard and line of the statement under way
};

}  // namespace vgpu
