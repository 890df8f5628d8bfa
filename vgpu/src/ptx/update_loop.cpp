// Recognizes compare-and-swap loops that compute one atomic update.
//
// Fields of Instruction: d is the register that is written, a, b, c and e are those that are read; of a swap, a, b and c are
// the address, the expected value and the new one.  imm is the target of a branch.
#include "update_loop.h"

#include <algorithm>
#include <map>

namespace vgpu {
namespace {

using Code = std::vector<Instruction>;
using Names = std::vector<std::string_view>;

constexpr size_t kMaxBody = 64;  // instructions

bool starts_with(std::string_view name, std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; }
bool is_swap(std::string_view name) { return starts_with(name, "atom.") && name.find(".cas.") != name.npos; }

struct Update {
  AtomicOperation operation = AtomicOperation::None;
  ValueType type = ValueType::Unsigned;
};

AtomicOperation arithmetic_operation(std::string_view op) {
  if (op == "add") return AtomicOperation::Add;
  if (op == "min") return AtomicOperation::Min;
  return op == "max" ? AtomicOperation::Max : AtomicOperation::None;
}
AtomicOperation bitwise_operation(std::string_view op) {
  if (op == "and") return AtomicOperation::And;
  if (op == "or") return AtomicOperation::Or;
  return op == "xor" ? AtomicOperation::Xor : AtomicOperation::None;
}

// Whether an atomic computes what an arithmetic instruction with these qualifiers does.
bool is_atomic_arithmetic(std::string_view op, bool is_real, std::string_view qualifiers) {
  if (qualifiers.empty()) return true;
  const bool rounds_to_nearest = qualifiers == ".rn" || qualifiers == ".rn.ftz";
  return is_real && (qualifiers == ".ftz" || (op == "add" && rounds_to_nearest));
}

ValueType value_type_of(std::string_view type) {
  if (type == "f32") return ValueType::Float;
  if (type == "f64") return ValueType::Double;
  return type == "s32" || type == "s64" ? ValueType::Signed : ValueType::Unsigned;
}

Update update_of(std::string_view name) {
  const size_t first = std::min(name.find('.'), name.size()), last = name.rfind('.');
  const std::string_view op = name.substr(0, first), type = last == name.npos ? "" : name.substr(last + 1);
  const std::string_view qualifiers = last == name.npos ? "" : name.substr(first, last - first);
  const bool is_real = type == "f32" || type == "f64",
             is_integer = type == "s32" || type == "u32" || type == "s64" || type == "u64";
  if (type == "b32" || type == "b64") return {bitwise_operation(op), ValueType::Unsigned};
  if (!(is_real || is_integer) || !is_atomic_arithmetic(op, is_real, qualifiers)) return {};
  return {arithmetic_operation(op), value_type_of(type)};
}

// The symbolic value of a register within one iteration of the loop.
struct Value {
  enum Kind : uint8_t { AtEntry, New, Old, Differs, Equals, Unknown } kind = Unknown;
  // New: the update's result; Old: the swap's result; Differs, Equals: a predicate that compares Old and the expected value.
  uint32_t first = 0, second = 0;  // AtEntry: the register; New: the registers at entry that are operands of the update
  Update update = {};
};

class Loop {
 public:
  Loop(Code& code, const Names& names, size_t swap) : code_(code), names_(names), swap_(swap) {}

  void mark() {
    if (!find_extent() || !has_one_entry_and_exit() || !follow() || !is_understood() || !is_private()) return;
    Instruction& swap = code_[swap_];
    swap.update = update_.operation, swap.update_type = update_.type, swap.vector_registers[0] = operand_;
    swap.result_unused = true;
    for (Instruction* guess : guesses_) guess->result_unused = true;
  }

 private:
  // Sets the loop's extent: from the target of the first branch behind the swap to that branch.
  bool find_extent() {
    for (last_ = swap_ + 1; last_ < std::min(swap_ + kMaxBody, code_.size()); last_++) {
      if (code_[last_].kind != InstructionKind::Branch) continue;
      first_ = static_cast<size_t>(code_[last_].imm);
      return first_ <= swap_ && swap_ - first_ < kMaxBody && code_[last_].guard >= 0;
    }
    return false;
  }

  bool has_one_entry_and_exit() const {
    for (size_t k = first_; k < last_; k++)
      if (code_[k].guard >= 0 || (k != swap_ && code_[k].kind != InstructionKind::Plain)) return false;
    return std::none_of(code_.begin(), code_.end(), [this](const Instruction& i) {
      if (i.kind == InstructionKind::IndexedBranch) return true;
      const size_t target = static_cast<size_t>(i.imm);
      return i.kind == InstructionKind::Branch && &i != &code_[last_] && target > first_ && target <= last_;
    });
  }

  Value& value(uint32_t reg) {
    auto [entry, is_new] = values_.try_emplace(reg);
    if (is_new) entry->second = {Value::AtEntry, reg, 0, {}};
    return entry->second;
  }
  bool is_written(uint32_t reg) const {
    return std::any_of(code_.begin() + first_, code_.begin() + last_, [=](const Instruction& i) {
      return i.d == reg || (i.kind == InstructionKind::Plain && std::count(i.vector_registers, i.vector_registers + 4, reg));
    });
  }

  Value compared(const Instruction& i, std::string_view name) {
    const Value a = value(i.a), b = value(i.b);
    const Value& expected = a.kind == Value::Old ? b : a;
    if (i.count != 1) return {};
    const bool is_comparison_with_expected =
        (a.kind == Value::Old) != (b.kind == Value::Old) && expected.kind == Value::AtEntry;
    const std::string_view comparison = name.substr(0, 8), type = name.substr(std::min<size_t>(8, name.size()));
    if (!is_comparison_with_expected || expected.first != carried_ || type.empty() || type[0] == 'f' ||
        type.find('.') != type.npos)
      return {};
    if (comparison == "setp.ne.") return {Value::Differs};
    return comparison == "setp.eq." ? Value{Value::Equals} : Value{};
  }
  Value updated(const Instruction& i, std::string_view name) {
    const Update update = update_of(name);
    const Value a = value(i.a), b = value(i.b);
    if (update.operation == AtomicOperation::None || a.kind != Value::AtEntry || b.kind != Value::AtEntry) return {};
    return {Value::New, a.first, b.first, update};
  }
  bool follow_swap(const Instruction& i) {
    const Value expected = value(i.b), desired = value(i.c);
    if (expected.kind != Value::AtEntry || desired.kind != Value::New || is_written(i.a)) return false;
    carried_ = expected.first, update_ = desired.update;
    operand_ = desired.first == carried_ ? desired.second : desired.first;
    const bool uses_expected = desired.first == carried_ || desired.second == carried_;
    return uses_expected && operand_ != carried_ && !is_written(operand_);
  }

  // Interprets one iteration; returns whether the swap stores an update, and the loop repeats on failure with the old value.
  bool follow() {
    for (size_t k = first_; k < last_; k++) {
      const Instruction& i = code_[k];
      const std::string_view name = names_[k];
      if (k == swap_ && !follow_swap(i)) return false;
      Value result = {};
      if (k == swap_) result = {Value::Old};
      else if (starts_with(name, "mov.") && i.count == 1 && i.d && i.a) result = value(i.a);
      else if (starts_with(name, "setp.") && k > swap_) result = compared(i, name);
      else if (k < swap_) result = updated(i, name);
      if (result.kind != Value::Unknown) understood_.push_back(k);
      if (i.d) values_[i.d] = result;
      if (k != swap_)
        for (uint32_t output : i.vector_registers)
          if (output) values_[output] = {};
    }
    const Instruction& back_branch = code_[last_];
    const Value::Kind repeat_condition = value(static_cast<uint32_t>(back_branch.guard)).kind;
    return repeat_condition == (back_branch.negated ? Value::Equals : Value::Differs) && value(carried_).kind == Value::Old;
  }

  // Returns whether all other instructions do not use the old value.
  bool is_understood() const {
    for (size_t k = first_; k < last_; k++) {
      if (std::count(understood_.begin(), understood_.end(), k)) continue;
      if (uses_register(code_[k], carried_)) return false;
      for (size_t understood : understood_)
        if (uses_register(code_[k], code_[understood].d)) return false;
    }
    return true;
  }

  static bool uses_register(const Instruction& i, uint32_t reg) {
    if (i.guard >= 0 && static_cast<uint32_t>(i.guard) == reg) return true;
    return i.d == reg || i.a == reg || i.b == reg || i.c == reg || i.e == reg ||
           std::count(i.vector_registers, i.vector_registers + 4, reg);
  }
  bool is_inside(size_t k) const { return k >= first_ && k <= last_; }

  // Returns whether values of the loop are not used outside of it, and the first expected value is moved or loaded there.
  bool is_private() {
    for (const auto& [reg, held_value] : values_) {
      if (reg != carried_ && !is_written(reg)) continue;
      for (size_t k = 0; k < code_.size(); k++) {
        if (is_inside(k) || !uses_register(code_[k], reg)) continue;
        if (reg != carried_ || !makes_guess(k, reg)) return false;
      }
    }
    return true;
  }
  bool makes_guess(size_t k, uint32_t reg) {
    Instruction& i = code_[k];
    if (starts_with(names_[k], "ld.") && i.count == 1 && i.vector_registers[0] == reg && i.a != reg)
      return guesses_.push_back(&i), true;
    if (!starts_with(names_[k], "mov.") || i.count != 1 || i.d != reg || i.a == reg) return false;
    add_moved_guess(i.a, k);
    return true;
  }
  // Adds the load of `ld x; mov reg, x`, if nothing else uses x.
  void add_moved_guess(uint32_t reg, size_t move) {
    Instruction* load = nullptr;
    for (size_t k = 0; k < code_.size(); k++) {
      Instruction& i = code_[k];
      if (k == move || !uses_register(i, reg)) continue;
      if (load || !starts_with(names_[k], "ld.") || i.count != 1 || i.vector_registers[0] != reg || i.a == reg) return;
      load = &i;
    }
    if (load) guesses_.push_back(load);
  }

  Code& code_;
  const Names& names_;
  const size_t swap_;
  size_t first_ = 0, last_ = 0;
  std::map<uint32_t, Value> values_;
  std::vector<size_t> understood_;  // indices of interpreted instructions
  uint32_t carried_ = 0, operand_ = 0;  // registers: the expected value, and the other operand of the update
  Update update_;
  std::vector<Instruction*> guesses_;  // loads of the first expected value
};

}  // namespace

void mark_update_loops(DecodedFunction& function, const std::vector<std::string_view>& names) {
  for (size_t k = 0; k < function.code.size(); k++)
    if (is_swap(names[k])) Loop(function.code, names, k).mark();
}

}  // namespace vgpu
