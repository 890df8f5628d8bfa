// Decodes the body of a PTX function to instructions of the core: scopes, registers, labels and operands.
// The flows say how values pass through the registers of each instruction (core/register_flow.h).
#include "decoder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/instruction_set.h"
#include "expansion.h"
#include "grammar.h"
#include "ptx/families/call.h"
#include "ptx/families/families.h"
#include "register_flows.h"
#include "register_uses.h"
#include "requirements.h"
#include "special_registers.h"
#include "update_loop.h"

namespace vgpu {
namespace {

constexpr uint32_t kMaxFrameBytes = 64u << 20;  // of the registers of one warp's call
constexpr uint32_t kMaxShared = 48u << 10;  // static shared memory of a kernel, as ptxas limits it
constexpr uint32_t kMaxLocalBytes = 512u << 10;  // of local memory per thread, as on hardware

uint32_t align_up(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

// Returns the families that decode an op, the most likely first.
const std::vector<DecodeFunction>& families(std::string_view op) {
  static const std::map<std::string_view, std::vector<DecodeFunction>> by_op = [] {
    std::map<std::string_view, std::vector<DecodeFunction>> table;
    auto add = [&table](DecodeFunction family, std::initializer_list<std::string_view> ops) {
      for (std::string_view op_name : ops) table[op_name].push_back(family);
    };
    add(decode_carry, {"add", "sub", "addc", "subc", "mad", "madc"});
    add(decode_integer, {"add", "sub", "mul", "mad", "mul24", "mad24", "div",  "rem", "min", "max",  "neg",
                         "abs", "sad", "and", "or",  "xor",   "not",   "cnot", "shl", "shr", "dp4a", "dp2a"});
    add(decode_bits, {"popc", "clz", "brev", "bfe", "bfi", "bfind", "prmt", "lop3", "shf", "szext", "bmsk", "fns"});
    add(decode_float, {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt",    "neg",
                       "abs", "min", "max", "ex2", "lg2", "sin", "cos", "tanh", "copysign", "testp"});
    add(decode_half, {"add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh"});
    add(decode_compare, {"setp", "set", "selp", "slct"});
    add(decode_convert, {"cvt"});
    add(decode_move, {"mov", "cvta", "isspacep"});
    add(decode_memory, {"ld", "ldu", "st", "prefetch", "prefetchu", "discard", "applypriority"});
    add(decode_asynchronous_copy, {"cp"});
    add(decode_atomic, {"atom", "red"});
    add(decode_call, {"call"});
    add(decode_control, {"bra", "brx", "ret", "exit", "trap", "brkpt", "bar", "barrier", "membar", "fence", "nanosleep",
                         "pmevent", "griddepcontrol"});
    add(decode_video, {"vadd",  "vsub",  "vabsdiff", "vmin",      "vmax",      "vshl",  "vshr",  "vset",
                       "vmad",  "vadd2", "vsub2",    "vavrg2",    "vabsdiff2", "vmin2", "vmax2", "vset2",
                       "vadd4", "vsub4", "vavrg4",   "vabsdiff4", "vmin4",     "vmax4", "vset4"});
    add(decode_stack, {"alloca", "stacksave", "stackrestore"});
    add(decode_texture, {"tex", "tld4", "txq", "suq"});
    add(decode_surface, {"suld", "sust", "sured"});
    add(decode_matrix, {"mma"});
    add(decode_wmma, {"wmma"});
    add(decode_warp, {"shfl", "vote", "match", "activemask", "redux", "elect"});
    return table;
  }();
  static const std::vector<DecodeFunction> no_families;
  auto entry = by_op.find(op);
  return entry == by_op.end() ? no_families : entry->second;
}

void invert(WarpContext& warp, const Instruction& i) { write_predicate(warp, i.d, ~predicate(warp, i.a)); }

Sort sort_of(std::string_view type) {
  if (type == "pred") return Sort::Predicate;
  return type[0] == 'u' || type[0] == 's'              ? Sort::Integer
         : type[0] == 'f' || type.substr(0, 2) == "bf" ? Sort::Real
                                                       : Sort::Bits;
}

// Returns whether registers of this sort are permitted for this type (PTX ISA, "Operand Type Information").
bool is_permitted_sort(Sort sort, std::string_view type) {
  const Sort type_sort = sort_of(type);
  return sort == Sort::Bits || type_sort == Sort::Bits || sort == type_sort;
}

}  // namespace

Decoder::Decoder(const ptx::Function& function, const SymbolTable& symbols)
    : function_(function),
      symbols_(symbols),
      tokens_(ptx::tokenize(function.body.text.substr(1, function.body.text.size() - 2), false, function.body.line)),
      source_lines_([&symbols](uint32_t number) { return symbols.file_name(number); }),
      scopes_(1),
      registers_end_(kSpecialBytes) {
  program_.name = function.name;
  program_.parameter_bytes = function.parameter_bytes;
  add_formals(function.parameters, Symbol::Input);
  add_formals(function.results, Symbol::Result);
}

void Decoder::add_formals(const std::vector<ptx::Parameter>& parameters, Symbol::Formal formal) {
  for (const ptx::Parameter& parameter : parameters) {
    if (parameter.name != "_") check_new_name(parameter.name);
    const uint32_t width = std::max(parameter.size, 2u);
    if (parameter.in_register) {
      if (width > 8) throw Unsupported(function_.name + ": a parameter in a register of 128 bits");
      scopes_[0].registers[parameter.name] = {add_register(width), width, sort_of(parameter.type), parameter.size == 1};
    } else {
      Symbol& symbol = scopes_[0].variables[parameter.name] = {ptx::StateSpace::Param, parameter.offset, parameter.size};
      symbol.formal = formal;
    }
  }
}

DecodedFunction Decoder::decode() {
  load_parameters(*this);
  decode_body();
  pending_ = Instruction();
  Instruction end = pending_;
  if (!function_.entry) store_results(*this, end);
  end.kind = function_.entry ? InstructionKind::Exit : InstructionKind::Return;
  emit(end);
  resolve_jumps();
  for (const RegisterFlow& flow : flows_) program_.flows.append(flow);
  program_.source_lines = source_lines_.take();
  program_.is_provable = true;  // its instructions have what the analyses need
  return std::move(program_);
}

namespace {

// Returns the position of the semicolon that ends the statement, which may contain lists in braces.
size_t statement_end(const std::vector<ptx::Token>& tokens, size_t at) {
  for (int depth = 0; at < tokens.size() && (depth || tokens[at].text != ";"); at++)
    depth += tokens[at].text == "{" ? 1 : tokens[at].text == "}" ? -1 : 0;
  return at;
}

// Returns the position behind a directive that ends with its line.
size_t next_line(const std::vector<ptx::Token>& tokens, size_t at) {
  const uint32_t line = tokens[at].line;
  while (at < tokens.size() && tokens[at].line == line) at++;
  return at;
}

size_t next_semicolon(const std::vector<ptx::Token>& tokens, size_t at) {
  while (at < tokens.size() && tokens[at].text != ";") at++;
  return at;
}

}  // namespace

void Decoder::decode_body() {
  size_t at = 0;
  while (at < tokens_.size()) {
    std::string_view text = tokens_[at].text;
    if (text == "{") enter_scope(), at++;
    else if (text == "}") {
      if (scopes_.size() > 1) scopes_.pop_back();
      at++;
    } else if (text == ";") at++;
    else if (parse_label(at)) continue;
    else if (text == ".loc" || text == ".file") {
      const size_t end = next_line(tokens_, at);
      if (text == ".loc") source_lines_.add(tokens_, at, end);
      at = end;
    } else {
      const size_t end = statement_end(tokens_, at);
      text[0] == '.' ? declare(at, end) : parse_statement(at, end);
      at = end + 1;
    }
  }
}

void Decoder::enter_scope() {
  outer_.push_back(scopes_.back().number);
  scopes_.emplace_back();
  scopes_.back().number = outer_.size() - 1;
}

// Finds a definition in the scope of use or in the enclosing scopes; nullptr: not found.
template <class T> const T* Decoder::find_visible(const std::map<Label, T>& definitions, Label use) const {
  for (;; use.first = outer_[use.first]) {
    auto definition = definitions.find(use);
    if (definition != definitions.end()) return &definition->second;
    if (!use.first) return nullptr;
  }
}

// Rejects a name that the current scope has already declared.
void Decoder::check_new_name(const std::string& name) const {
  const Scope& scope = scopes_.back();
  if (scope.registers.count(name) || scope.variables.count(name))
    throw Unsupported(function_.name + ": a name that is declared twice: " + name);
}

// Parses `NAME:`, or a label with a directive such as `NAME: .branchtargets A, B;`; returns false if there is no label.
bool Decoder::parse_label(size_t& at) {
  if (at + 1 >= tokens_.size() || tokens_[at + 1].text != ":" || tokens_[at].text[0] == '.') return false;
  if (at + 2 < tokens_.size() && tokens_[at + 2].text == ":") return false;
  std::string name(tokens_[at].text);
  at += 2;
  const std::string_view directive = at < tokens_.size() ? tokens_[at].text : std::string_view();
  if (directive == ".branchtargets") {
    for (at++; at < tokens_.size() && tokens_[at].text != ";"; at++)
      if (tokens_[at].text != ",") table_labels_[label_here(name)].push_back(label_here(tokens_[at].text));
  } else if (directive == ".callprototype") {
    prototypes_[name] = ptx::parse_signature(tokens_, ++at);
    at = next_semicolon(tokens_, at);
  } else if (directive == ".calltargets") {
    const ptx::Function* first = at + 1 < tokens_.size() ? symbols_.function(std::string(tokens_[at + 1].text)) : nullptr;
    if (first) prototypes_[name] = *first;
    at = next_semicolon(tokens_, at);
  } else {
    if (!labels_.try_emplace(label_here(name), program_.code.size()).second)
      throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": a label that stands twice: " + name);
  }
  return true;
}

void Decoder::declare(size_t begin, size_t end) {
  if (tokens_[begin].text == ".pragma") return parse_pragma(begin + 1, end);
  for (const ptx::Declaration& declaration : ptx::parse_declarations(tokens_, begin, end)) {
    if (declaration.space != ptx::StateSpace::Register) {
      declare_variable(declaration);
      continue;
    }
    uint32_t width = declaration.type == "pred" ? 0 : std::max(declaration.element, 2u);  // 0: a predicate
    auto add = [&](const std::string& name) {
      check_new_name(name);
      scopes_.back().registers[name] = {add_register(width), width, sort_of(declaration.type),
                                        width && declaration.element == 1};
    };
    if (!declaration.count) add(declaration.name);
    for (uint32_t k = 0; k < declaration.count; k++) add(declaration.name + std::to_string(k));
  }
}

// Checks the syntax of a pragma, such as `.pragma "nounroll", "..."`, and ignores it.
void Decoder::parse_pragma(size_t begin, size_t end) const {
  bool is_valid = (end - begin) % 2 == 1;
  for (size_t k = begin; k < end && is_valid; k++)
    is_valid = (k - begin) % 2 ? tokens_[k].text == "," : tokens_[k].text.size() > 1 && tokens_[k].text[0] == '"';
  if (!is_valid) throw Unsupported("line " + std::to_string(tokens_[begin - 1].line) + ": a pragma that is no text");
}

void Decoder::declare_variable(const ptx::Declaration& declaration) {
  check_new_name(declaration.name);
  uint32_t* bytes = declaration.space == ptx::StateSpace::Shared  ? &program_.shared_bytes
                    : declaration.space == ptx::StateSpace::Local ? &program_.local_bytes
                    : declaration.space == ptx::StateSpace::Param ? &program_.scratch_bytes
                                                                  : nullptr;
  if (!bytes) throw Unsupported("line " + std::to_string(tokens_[0].line) + ": a global variable in a function");
  if (uint64_t(*bytes) + declaration.align + declaration.size > kMaxLocalBytes)
    throw Unsupported(function_.name + ": a variable that is too large: " + declaration.name);
  if (!declaration.initial.empty())
    throw Unsupported(function_.name + ": a variable of a function with an initial value: " + declaration.name);
  if (declaration.space == ptx::StateSpace::Shared) {
    const uint32_t offset = reserve_shared(declaration.name, declaration.size, std::max(declaration.align, 8u));
    scopes_.back().variables[declaration.name] = {declaration.space, offset, declaration.size, declaration.align, false};
    return;
  }
  *bytes = align_up(*bytes, std::max(declaration.align, 8u));
  if (declaration.space == ptx::StateSpace::Local) program_.local_align = std::max(program_.local_align, declaration.align);
  Symbol& symbol =
      scopes_.back().variables[declaration.name] = {declaration.space, *bytes, declaration.size, declaration.align};
  symbol.in_scratch = declaration.space == ptx::StateSpace::Param;
  *bytes += declaration.size;
}

// Reads a guard, such as @!p, if there is one.
void Decoder::parse_guard(const Statement& s, size_t& at, size_t end) {
  if (tokens_[at].text != "@") return;
  if (++at < end && tokens_[at].text == "!") pending_.negated = true, at++;
  if (at >= end) reject(s, "a guard alone");
  const RegisterSlot* guard = find_register(tokens_[at++].text);
  if (!guard || guard->width) reject(s, "a guard that is no predicate");
  pending_.guard = static_cast<int32_t>(guard->offset);
}

// Returns the token and those of its `::` behind it, such as shared::cta, and moves `at` behind them.
std::string_view Decoder::parse_name_part(size_t& at, size_t end) {
  const char* const begin = tokens_[at].text.data();
  const char* part_end = begin + tokens_[at].text.size();
  while (++at + 2 < end && tokens_[at].text == ":" && tokens_[at + 1].text == ":" && tokens_[at].text.data() == part_end) {
    part_end = tokens_[at + 2].text.data() + tokens_[at + 2].text.size();
    at += 2;
  }
  return {begin, static_cast<size_t>(part_end - begin)};
}

// Reads the name of the operation, and its qualifiers behind dots, before which there may be blanks.
void Decoder::parse_name(Statement& s, size_t& at, size_t end) {
  std::string_view full_name = parse_name_part(at, end);
  while (at < end && tokens_[at].text[0] == '.' && tokens_[at].text.size() > 1) {
    made_texts_.push_back(std::make_unique<const std::string>(std::string(full_name) + std::string(parse_name_part(at, end))));
    full_name = *made_texts_.back();
  }
  statement_name_ = full_name;
  for (size_t part_begin = 0; part_begin <= full_name.size();) {
    size_t dot = std::min(full_name.find('.', part_begin), full_name.size());
    part_begin == 0 ? s.op = full_name.substr(0, dot)
                    : (s.qualifiers.push_back(full_name.substr(part_begin, dot - part_begin)), std::string_view());
    part_begin = dot + 1;
  }
}

void Decoder::parse_statement(size_t begin, size_t end) {
  size_t at = begin;
  Statement s;
  s.line = tokens_[at].line;
  pending_ = Instruction();
  pending_.line = s.line;
  parse_guard(s, at, end);
  if (at >= end) reject(s, "nothing to do");
  const size_t name = at;
  parse_name(s, at, end);
  while (at < end) {
    s.operands.push_back(s.op == "call" && text(at, end) == "(" ? parse_list(at, end) : parse_operand(at, end));
    if (at < end && tokens_[at].text != ",") reject(s, "operands that are not separated");
    at++;
  }
  if (!has_form(s)) reject(s);
  if (const std::string requirement = required_beyond(s, function_.version, function_.target); !requirement.empty())
    reject(s, requirement.c_str());
  if (decode_expansion(s, begin, name)) return;
  try {
    for (DecodeFunction family : families(s.op)) {
      Instruction i = pending_;
      const size_t first = program_.code.size();
      reads_.clear(), writes_.clear();
      const bool is_decoded = family(*this, s, i);
      set_flows(s, family, program_.code.data() + first, flows_.data() + first, flows_.size() - first, reads_, writes_);
      if (is_decoded) return;
    }
  } catch (const std::out_of_range&) {  // thrown by operands.at() in the families
    reject(s, "an operand is missing");
  }
  reject(s);
}

// Decodes a statement as several simpler ones, which are on the same line; returns false if it is not such a statement.
// begin: its first token, of the guard if it has one; name: that of its name.
bool Decoder::decode_expansion(const Statement& s, size_t begin, size_t name) {
  const ptx::Expand expand = ptx::expand_function(s);
  if (!expand) return false;
  std::string guard;
  for (size_t k = begin; k < name; k++) guard.append(tokens_[k].text);
  if (!guard.empty()) guard += ' ';
  uint32_t address_bytes = 8;
  for (const Operand& operand : s.operands)
    if (const RegisterSlot* slot = operand.kind == Operand::Address ? find_register(operand.text) : nullptr)
      address_bytes = slot->width;
  auto text = std::make_unique<const std::string>(expand(s, guard, address_bytes));
  if (text->empty()) return false;
  std::vector<ptx::Token> outer = std::exchange(tokens_, ptx::tokenize(*text, false, s.line));
  made_texts_.push_back(std::move(text));
  decode_body();
  tokens_ = std::move(outer);
  return true;
}

const RegisterSlot* Decoder::find_register(std::string_view name) const {
  std::string key(name);
  for (size_t k = scopes_.size(); k--;) {
    auto entry = scopes_[k].registers.find(key);
    if (entry != scopes_[k].registers.end()) return &entry->second;
  }
  return nullptr;
}

uint32_t Decoder::reserve_in_frame(uint32_t bytes) {
  uint32_t offset = registers_end_;
  registers_end_ += align_up(bytes, 32);
  if (registers_end_ > kMaxFrameBytes) throw Unsupported(function_.name + ": too many registers");
  return offset;
}

uint32_t Decoder::add_register(uint32_t width) { return reserve_in_frame(width ? width * kWarpSize : 4); }

uint32_t Decoder::scratch_register(uint32_t width) { return add_register(width); }

uint32_t Decoder::carry_predicate() {
  if (!carry_) carry_ = add_register(0);
  note_read(carry_);
  return note_written(carry_);
}

Decoder::Stack Decoder::stack(uint32_t align) {
  if (!stack_.used_register) {
    program_.local_bytes = align_up(program_.local_bytes, kMaxStackAlign);
    stack_ = {program_.local_bytes, add_register(8)};
    program_.local_bytes += kStackBytes;
    if (program_.local_bytes > kMaxLocalBytes) throw Unsupported(function_.name + ": too many local variables");
  }
  program_.local_align = std::max(program_.local_align, align);
  return stack_;
}

uint32_t Decoder::scratch_memory(uint32_t bytes) {
  const uint32_t offset = program_.scratch_bytes = align_up(program_.scratch_bytes, 8);
  program_.scratch_bytes += bytes;
  if (program_.scratch_bytes > kMaxLocalBytes) throw Unsupported(function_.name + ": too many arguments");
  return offset;
}

uint32_t Decoder::constant(uint64_t bits, uint32_t width) {
  if (width < 8) bits &= (1ull << (8 * width)) - 1;
  auto [entry, is_new] = constants_.try_emplace({bits, width}, kConstants + program_.constants.size());
  if (is_new)
    for (uint32_t lane = 0; lane < kWarpSize; lane++)
      for (uint32_t byte = 0; byte < width; byte++) program_.constants.push_back(static_cast<uint8_t>(bits >> (8 * byte)));
  return entry->second;
}

void Decoder::reject_operand(const Operand& o, const char* why) const {
  throw Unsupported("line " + std::to_string(pending_.line) + ": " + why + ": " + std::string(o.text));
}

uint64_t Decoder::bits(const Operand& literal, std::string_view type) const {
  uint64_t result = 0;
  if (literal.kind != Operand::Literal) reject_operand(literal, "no constant");
  if (!ptx::bits_as(literal.constant, type, result)) reject_operand(literal, "a constant of another type than the instruction");
  return result;
}

RegisterSlot Decoder::slot_of(const Operand& o, std::string_view type) {
  uint32_t width = std::max(ptx::size_of(type), 1u);
  if (o.inverted) reject_operand(o, "only predicates are inverted");
  if (o.negative) reject_operand(o, "no register has a sign here");
  if (o.kind == Operand::Literal) return {constant(bits(o, type), width), width, Sort::Literal};
  if (o.kind == Operand::Register && !o.offset) {
    if (const RegisterSlot* slot = find_register(o.text)) {
      if (!is_permitted_sort(slot->sort, type)) reject_operand(o, "a register of another type than the instruction");
      if (slot->is_byte && ptx::size_of(type) > 1) reject_operand(o, "a register narrower than the instruction");
      return *slot;
    }
    if (const SpecialSource* special = special_register_of(o.text)) {
      const bool is_constant = special->core_register < 0;
      return {is_constant ? constant(special->value, special->width)
                          : special_offset(static_cast<uint32_t>(special->core_register)),
              special->width, Sort::Special};
    }
  }
  reject_operand(o, "an operand that is not known");
}

RegisterSlot Decoder::source_slot(const Operand& o, std::string_view type) {
  const RegisterSlot slot = slot_of(o, type);
  note_read(slot.offset);
  return slot;
}

RegisterSlot Decoder::result_slot(const Operand& o, std::string_view type) {
  RegisterSlot slot = slot_of(o, type);
  if (slot.sort == Sort::Literal || slot.sort == Sort::Special) reject_operand(o, "only registers are written");
  note_written(slot.offset);
  return slot;
}

uint32_t Decoder::source(const Operand& o, std::string_view type) {
  const uint32_t offset = slot_of_width(o, type);
  note_read(offset);
  return offset;
}

uint32_t Decoder::slot_of_width(const Operand& o, std::string_view type) {
  RegisterSlot slot = slot_of(o, type);
  uint32_t width = ptx::size_of(type);
  if (slot.sort == Sort::Special) reject_operand(o, "only mov reads special registers");
  if (slot.width == width) return slot.offset;
  if (slot.width > width && width >= 2) reject_operand(o, "a register wider than the instruction");
  reject_operand(o, ("a register of another width than " + std::string(type)).c_str());
}

uint32_t Decoder::result(const Operand& o, std::string_view type, bool allows_sink) {
  if (allows_sink && o.text == "_") return scratch_register(std::max(ptx::size_of(type), 2u));
  result_slot(o, type);
  return slot_of_width(o, type);
}

Decoder::Halves Decoder::halves_of(const Operand& o) {
  if (o.kind != Operand::Register) reject_operand(o, "no register of 128 bits");
  const uint32_t offset = slot_of_width(o, "b128");
  return {offset, offset + 8 * kWarpSize};
}

Decoder::Halves Decoder::source_halves(const Operand& o) {
  const Halves halves = halves_of(o);
  note_read(halves.lower), note_read(halves.upper);
  return halves;
}

Decoder::Halves Decoder::result_halves(const Operand& o) {
  const Halves halves = halves_of(o);
  note_written(halves.lower), note_written(halves.upper);
  return halves;
}

bool Decoder::is_predicate(const Operand& o) const {
  const RegisterSlot* slot = find_register(o.text);
  return slot && slot->sort == Sort::Predicate;
}

uint32_t Decoder::predicate(const Operand& o) {
  if (o.kind == Operand::Literal) return constant(bits(o, "u32") ? kFullMask : 0, 4);
  const RegisterSlot* slot = o.negative || o.offset ? nullptr : find_register(o.text);
  if (!slot || slot->width) reject_operand(o, "no predicate");
  note_read(slot->offset);
  if (!o.inverted) return slot->offset;
  Instruction i;
  i.line = pending_.line, i.execute = invert, i.a = slot->offset, i.d = add_register(0);
  emit(i);
  flows_.back() = {ValueFlow::Lanewise, {i.a}, 0, {i.d}};
  return i.d;
}

uint32_t Decoder::predicate_result(const Operand& o, bool allows_sink) {
  if (allows_sink && o.text == "_") return scratch_register(0);
  if (o.inverted || o.kind == Operand::Literal) reject_operand(o, "only registers are written");
  const RegisterSlot* slot = o.negative || o.offset ? nullptr : find_register(o.text);
  if (!slot || slot->width) reject_operand(o, "no predicate");
  return note_written(slot->offset);
}

const Symbol* Decoder::symbol(const std::string& name) {
  for (size_t k = scopes_.size(); k--;) {
    auto entry = scopes_[k].variables.find(name);
    if (entry != scopes_[k].variables.end()) return &entry->second;
  }
  const Symbol* entry = symbols_.find(name);
  if (!entry || entry->space != ptx::StateSpace::Shared) return entry;
  program_.shared_align = std::max(program_.shared_align, entry->align);
  if (entry->dynamic) return entry;
  // Shared memory is allocated only for variables that the kernel uses.
  if (uint64_t(program_.shared_bytes) + entry->align + entry->size > kMaxLocalBytes)
    throw Unsupported(function_.name + ": too much shared memory: " + name);
  const uint32_t offset = reserve_shared(name, entry->size, std::max(entry->align, 16u));
  Symbol& local = scopes_[0].variables[name] = *entry;
  local.address = offset;
  return &local;
}

// Allocates shared memory, with a guard gap behind it for VGPU_CHECK=memcheck.
uint32_t Decoder::reserve_shared(const std::string& name, uint32_t bytes, uint32_t align) {
  constexpr uint32_t kMinGuard = 256, kMaxGuard = 4096;
  const uint32_t begin = align_up(program_.shared_bytes, align), guard = std::clamp(bytes, kMinGuard, kMaxGuard);
  program_.shared_align = std::max(program_.shared_align, align);
  if (!bytes) return begin;  // dynamic shared memory that the body declares
  program_.shared_variables.push_back({name, begin, begin + bytes});
  program_.shared_bytes = begin + bytes;
  if (program_.declared_shared() > kMaxShared)
    throw Unsupported(function_.name + ": more than 48 KiB of shared memory that is declared");
  if (symbols_.guards_shared()) program_.shared_bytes += guard, program_.shared_guards += guard;
  return begin;
}

void Decoder::emit(Instruction i) {
  program_.code.push_back(i), statement_names_.push_back(statement_name_), flows_.emplace_back();
}

void Decoder::jump(Instruction i, std::string_view label) {
  jumps_.push_back({program_.code.size(), label_here(label), pending_.line});
  emit(i);
}

uint32_t Decoder::branch_table(std::string_view label) {
  auto [entry, is_new] = table_numbers_.try_emplace(label_here(label), static_cast<uint32_t>(table_numbers_.size()));
  return entry->second;
}

uint32_t Decoder::call(CallSite site) {
  program_.calls.push_back(std::move(site));
  return static_cast<uint32_t>(program_.calls.size() - 1);
}

const ptx::Function* Decoder::prototype(std::string_view label) const {
  auto entry = prototypes_.find(label);
  return entry == prototypes_.end() ? nullptr : &entry->second;
}

uint64_t Decoder::take_address(const ptx::Function& function) {
  program_.address_taken.push_back(function.name);
  return ptx::address_of(function);
}

void Decoder::reject(const Statement& s, const char* why) const {
  std::string text(s.op);
  for (std::string_view qualifier : s.qualifiers) text += "." + std::string(qualifier);
  throw Unsupported("line " + std::to_string(s.line) + ": " + why + ": " + text);
}

// Replaces labels by positions, and moves constants behind the registers.
void Decoder::resolve_jumps() {
  auto position_of = [this](const Label& label, uint32_t line) {
    const size_t* definition = find_visible(labels_, label);
    if (!definition) throw Unsupported("line " + std::to_string(line) + ": no label " + label.second);
    return *definition;
  };
  for (const UnresolvedJump& unresolved : jumps_)
    program_.code[unresolved.instruction].imm = static_cast<int64_t>(position_of(unresolved.label, unresolved.line));
  program_.branch_tables.resize(table_numbers_.size());
  for (const auto& [name, number] : table_numbers_) {
    const std::vector<Label>* definition = find_visible(table_labels_, name);
    if (!definition) throw Unsupported("no table " + name.second);
    for (const Label& label : *definition)
      program_.branch_tables[number].push_back(static_cast<uint32_t>(position_of(label, 0)));
  }
  program_.register_bytes = align_up(registers_end_, 64);
  program_.local_bytes = align_up(program_.local_bytes, program_.local_align);  // of consecutive lanes
  auto relocate = [this](uint32_t& offset) {
    if (offset >= kConstants) offset = offset - kConstants + program_.register_bytes;
  };
  for (Instruction& i : program_.code) {
    for (uint32_t* unresolved : {&i.d, &i.a, &i.b, &i.c, &i.e}) relocate(*unresolved);
    for (uint32_t& unresolved : i.vector_registers) relocate(unresolved);
  }
  program_.constants.resize(align_up(static_cast<uint32_t>(program_.constants.size()), 64));
  mark_register_uses(program_);
  mark_update_loops(program_, statement_names_);
}

}  // namespace vgpu
