// Decodes the body of a PTX function into instructions of the core: scopes, registers, labels, operands.
#include "decoder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/instruction_set.h"
#include "grammar.h"
#include "ptx/families/call.h"
#include "ptx/families/families.h"
#include "register_uses.h"
#include "requirements.h"
#include "special_registers.h"
#include "update_loop.h"

namespace vgpu {
namespace {

constexpr uint32_t kConstants = 1u << 30;  // offsets from here on are constants' until their place is known
constexpr uint32_t kMaxFrameBytes = 64u << 20;
constexpr uint32_t kMaxShared = 48u << 10;  // that a kernel declares itself: ptxas takes no more
constexpr uint32_t kMaxLocalBytes = 512u << 10;  // of local memory a thread, as on a card; shared memory has less

uint32_t align_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

// The families that know an op word, the likeliest first.
const std::vector<DecodeFunction>& families(std::string_view op) {
  static const std::map<std::string_view, std::vector<DecodeFunction>> known = [] {
    std::map<std::string_view, std::vector<DecodeFunction>> table;
    auto add = [&table](DecodeFunction family, std::initializer_list<std::string_view> ops) {
      for (std::string_view one : ops) table[one].push_back(family);
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
    add(decode_warp, {"shfl", "vote", "match", "activemask", "redux", "elect"});
    return table;
  }();
  static const std::vector<DecodeFunction> none;
  auto found = known.find(op);
  return found == known.end() ? none : found->second;
}

void invert(WarpContext& warp, const Instruction& i) { write_predicate(warp, i.d, ~predicate(warp, i.a)); }

Sort sort_of(std::string_view type) {
  if (type == "pred") return Sort::Predicate;
  return type[0] == 'u' || type[0] == 's'              ? Sort::Integer
         : type[0] == 'f' || type.substr(0, 2) == "bf" ? Sort::Real
                                                       : Sort::Bits;
}

// Are registers of this sort an instruction's of this type?  PTX ISA, "Operand Type Information".
bool agree(Sort sort, std::string_view type) {
  const Sort wanted = sort_of(type);
  return sort == Sort::Bits || wanted == Sort::Bits || sort == wanted;
}

}  // namespace

Decoder::Decoder(const ptx::Function& function, const SymbolTable& symbols)
    : function_(function),
      symbols_(symbols),
      tokens_(ptx::tokenize(function.body.text.substr(1, function.body.text.size() - 2), false, function.body.line)),
      scopes_(1),
      registers_end_(kSpecialBytes) {
  program_.name = function.name;
  program_.parameter_bytes = function.parameter_bytes;
  add_formals(function.parameters);
  add_formals(function.results);
}

void Decoder::add_formals(const std::vector<ptx::Parameter>& formals) {
  for (const ptx::Parameter& one : formals) {
    if (one.name != "_") take_name(one.name);
    if (!one.in_register) scopes_[0].variables[one.name] = {ptx::StateSpace::Param, one.offset, one.size};
    else scopes_[0].registers[one.name] = {add_register(std::max(one.size, 2u)), std::max(one.size, 2u), sort_of(one.type)};
  }
}

DecodedFunction Decoder::decode() {
  load_parameters(*this);
  body();
  pending_ = Instruction();
  Instruction end = pending_;
  if (!function_.entry) store_results(*this, end);
  end.kind = function_.entry ? InstructionKind::Exit : InstructionKind::Return;
  emit(end);
  resolve();
  program_.is_provable = true;
  return std::move(program_);
}

namespace {

// The mark that ends the statement, behind lists in braces.
size_t statement_end(const std::vector<ptx::Token>& tokens, size_t at) {
  for (int depth = 0; at < tokens.size() && (depth || tokens[at].text != ";"); at++)
    depth += tokens[at].text == "{" ? 1 : tokens[at].text == "}" ? -1 : 0;
  return at;
}

// A line of its own, without a mark at its end.
size_t behind_line(const std::vector<ptx::Token>& tokens, size_t at) {
  const uint32_t line = tokens[at].line;
  while (at < tokens.size() && tokens[at].line == line) at++;
  return at;
}

size_t next_semicolon(const std::vector<ptx::Token>& tokens, size_t at) {
  while (at < tokens.size() && tokens[at].text != ";") at++;
  return at;
}

}  // namespace

void Decoder::body() {
  size_t at = 0;
  while (at < tokens_.size()) {
    std::string_view text = tokens_[at].text;
    if (text == "{") enter(), at++;
    else if (text == "}") {
      if (scopes_.size() > 1) scopes_.pop_back();
      at++;
    } else if (text == ";") at++;
    else if (label(at)) continue;
    else if (text == ".loc" || text == ".file") at = behind_line(tokens_, at);
    else {
      const size_t end = statement_end(tokens_, at);
      text[0] == '.' ? declare(at, end) : statement(at, end);
      at = end + 1;
    }
  }
}

void Decoder::enter() {
  outer_.push_back(scopes_.back().number);
  scopes_.emplace_back();
  scopes_.back().number = outer_.size() - 1;
}

// A scope sees what it declares itself, then what those around it do.  nullptr: none does.
template <class T> const T* Decoder::visible(const std::map<Label, T>& among, Label wanted) const {
  for (;; wanted.first = outer_[wanted.first]) {
    auto found = among.find(wanted);
    if (found != among.end()) return &found->second;
    if (!wanted.first) return nullptr;
  }
}

// A scope has each name once.
void Decoder::take_name(const std::string& name) const {
  const Scope& own = scopes_.back();
  if (own.registers.count(name) || own.variables.count(name))
    throw Unsupported(function_.name + ": a name that is declared twice: " + name);
}

// `NAME:`, or a table of targets `NAME: .branchtargets A, B;`.
bool Decoder::label(size_t& at) {
  if (at + 1 >= tokens_.size() || tokens_[at + 1].text != ":" || tokens_[at].text[0] == '.') return false;
  if (at + 2 < tokens_.size() && tokens_[at + 2].text == ":") return false;
  std::string name(tokens_[at].text);
  at += 2;
  const std::string_view directive = at < tokens_.size() ? tokens_[at].text : std::string_view();
  if (directive == ".branchtargets") {
    for (at++; at < tokens_.size() && tokens_[at].text != ";"; at++)
      if (tokens_[at].text != ",") table_labels_[here(name)].push_back(here(tokens_[at].text));
  } else if (directive == ".callprototype") {
    prototypes_[name] = ptx::parse_signature(tokens_, ++at);
    at = next_semicolon(tokens_, at);
  } else if (directive == ".calltargets") {
    const ptx::Function* first = at + 1 < tokens_.size() ? symbols_.function(std::string(tokens_[at + 1].text)) : nullptr;
    if (first) prototypes_[name] = *first;
    at = next_semicolon(tokens_, at);
  } else {
    if (!labels_.try_emplace(here(name), program_.code.size()).second)
      throw Unsupported("line " + std::to_string(tokens_[at - 1].line) + ": a label that stands twice: " + name);
  }
  return true;
}

void Decoder::declare(size_t from, size_t to) {
  if (tokens_[from].text == ".pragma") return pragma(from + 1, to);
  for (const ptx::Declaration& one : ptx::parse_declarations(tokens_, from, to)) {
    if (one.space != ptx::StateSpace::Register) {
      variable(one);
      continue;
    }
    uint32_t width = one.type == "pred" ? 0 : std::max(one.element, 2u);
    auto add = [&](const std::string& name) {
      take_name(name);
      scopes_.back().registers[name] = {add_register(width), width, sort_of(one.type)};
    };
    if (!one.count) add(one.name);
    for (uint32_t k = 0; k < one.count; k++) add(one.name + std::to_string(k));
  }
}

// Texts, which say nothing that an interpreter needs: `.pragma "nounroll", "..."`.
void Decoder::pragma(size_t from, size_t to) const {
  bool sound = (to - from) % 2 == 1;
  for (size_t k = from; k < to && sound; k++)
    sound = (k - from) % 2 ? tokens_[k].text == "," : tokens_[k].text.size() > 1 && tokens_[k].text[0] == '"';
  if (!sound) throw Unsupported("line " + std::to_string(tokens_[from - 1].line) + ": a pragma that is no text");
}

void Decoder::variable(const ptx::Declaration& one) {
  take_name(one.name);
  uint32_t* bytes = one.space == ptx::StateSpace::Shared  ? &program_.shared_bytes
                    : one.space == ptx::StateSpace::Local ? &program_.local_bytes
                    : one.space == ptx::StateSpace::Param ? &program_.scratch_bytes
                                                          : nullptr;
  if (!bytes) throw Unsupported("line " + std::to_string(tokens_[0].line) + ": a global variable in a function");
  if (uint64_t(*bytes) + one.align + one.size > kMaxLocalBytes)
    throw Unsupported(function_.name + ": a variable that is too large: " + one.name);
  if (one.space == ptx::StateSpace::Shared) {
    const uint32_t at = reserve_shared(one.name, one.size, std::max(one.align, 8u));
    scopes_.back().variables[one.name] = {one.space, at, one.size, one.align, false};
    return;
  }
  *bytes = align_up(*bytes, std::max(one.align, 8u));
  if (one.space == ptx::StateSpace::Local) program_.local_align = std::max(program_.local_align, one.align);
  // A parameter that a body declares lies in the scratch space: `dynamic` tells it from the function's own.
  scopes_.back().variables[one.name] = {one.space, *bytes, one.size, one.align, one.space == ptx::StateSpace::Param};
  *bytes += one.size;
}

void Decoder::statement(size_t from, size_t to) {
  Statement s;
  s.line = tokens_[from].line;
  pending_ = Instruction();
  pending_.line = s.line;
  if (tokens_[from].text == "@") {
    if (++from < to && tokens_[from].text == "!") pending_.negated = true, from++;
    if (from >= to) reject(s, "a guard alone");
    const RegisterSlot* guard = find_register(tokens_[from++].text);
    if (!guard || guard->width) reject(s, "a guard that is no predicate");
    pending_.guard = static_cast<int32_t>(guard->offset);
  }
  if (from >= to) reject(s, "nothing to do");
  const char* begin = tokens_[from].text.data();
  const char* end = begin + tokens_[from].text.size();
  while (++from + 2 < to && tokens_[from].text == ":" && tokens_[from + 1].text == ":" && tokens_[from].text.data() == end) {
    end = tokens_[from + 2].text.data() + tokens_[from + 2].text.size();  // shared::cta
    from += 2;
  }
  std::string_view full(begin, static_cast<size_t>(end - begin));
  statement_name_ = full;
  for (size_t at = 0; at <= full.size();) {
    size_t dot = std::min(full.find('.', at), full.size());
    at == 0 ? s.op = full.substr(0, dot) : (s.qualifiers.push_back(full.substr(at, dot - at)), std::string_view());
    at = dot + 1;
  }
  while (from < to) {
    s.operands.push_back(operand(from, to));
    if (from < to && tokens_[from].text != ",") reject(s, "operands that are not separated");
    from++;
  }
  if (!has_form(s)) reject(s);
  if (const std::string newer = required_beyond(s, function_.version, function_.target); !newer.empty())
    reject(s, newer.c_str());
  try {
    for (DecodeFunction family : families(s.op)) {
      Instruction i = pending_;
      if (family(*this, s, i)) return;
    }
  } catch (const std::out_of_range&) {  // of `at`: families read their operands by number
    reject(s, "an operand is missing");
  }
  reject(s);
}

const RegisterSlot* Decoder::find_register(std::string_view name) const {
  std::string key(name);
  for (size_t k = scopes_.size(); k--;) {
    auto found = scopes_[k].registers.find(key);
    if (found != scopes_[k].registers.end()) return &found->second;
  }
  return nullptr;
}

uint32_t Decoder::reserve_local(uint32_t bytes) {
  uint32_t at = registers_end_;
  registers_end_ += align_up(bytes, 32);
  if (registers_end_ > kMaxFrameBytes) throw Unsupported(function_.name + ": too many registers");
  return at;
}

uint32_t Decoder::add_register(uint32_t width) { return reserve_local(width ? width * kWarpSize : 4); }

uint32_t Decoder::scratch_register(uint32_t width) { return add_register(width); }

uint32_t Decoder::carry_predicate() {
  if (!carry_) carry_ = add_register(0);
  return carry_;
}

Decoder::Stack Decoder::stack(uint32_t align) {
  if (!stack_.full) {
    program_.local_bytes = align_up(program_.local_bytes, kMaxStackAlign);
    stack_ = {program_.local_bytes, add_register(8)};
    program_.local_bytes += kStackBytes;
    if (program_.local_bytes > kMaxLocalBytes) throw Unsupported(function_.name + ": too many local variables");
  }
  program_.local_align = std::max(program_.local_align, align);
  return stack_;
}

uint32_t Decoder::scratch_memory(uint32_t bytes) {
  const uint32_t at = program_.scratch_bytes = align_up(program_.scratch_bytes, 8);
  program_.scratch_bytes += bytes;
  if (program_.scratch_bytes > kMaxLocalBytes) throw Unsupported(function_.name + ": too many arguments");
  return at;
}

uint32_t Decoder::constant(uint64_t bits, uint32_t width) {
  if (width < 8) bits &= (1ull << (8 * width)) - 1;
  auto [known, fresh] = constants_.try_emplace({bits, width}, kConstants + program_.constants.size());
  if (fresh)
    for (uint32_t lane = 0; lane < kWarpSize; lane++)
      for (uint32_t byte = 0; byte < width; byte++) program_.constants.push_back(static_cast<uint8_t>(bits >> (8 * byte)));
  return known->second;
}

void Decoder::reject_operand(const Operand& o, const char* why) const {
  throw Unsupported("line " + std::to_string(pending_.line) + ": " + why + ": " + std::string(o.text));
}

uint64_t Decoder::bits(const Operand& literal, std::string_view type) const {
  uint64_t made = 0;
  if (literal.kind != Operand::Literal) reject_operand(literal, "no constant");
  if (!ptx::bits_as(literal.constant, type, made)) reject_operand(literal, "a constant of another type than the instruction");
  return made;
}

RegisterSlot Decoder::source_operand(const Operand& o, std::string_view type) {
  uint32_t width = std::max(ptx::size_of(type), 1u);
  if (o.inverted) reject_operand(o, "only predicates are inverted");
  if (o.negative) reject_operand(o, "no register has a sign here");
  if (o.kind == Operand::Literal) return {constant(bits(o, type), width), width, Sort::Literal};
  if (o.kind == Operand::Register && !o.offset) {
    if (const RegisterSlot* slot = find_register(o.text)) {
      if (!agree(slot->sort, type)) reject_operand(o, "a register of another type than the instruction");
      return *slot;
    }
    if (const SpecialSource* special = special_register_of(o.text)) {
      const bool same = special->which < 0;
      return {same ? constant(special->value, special->width) : special_offset(static_cast<uint32_t>(special->which)),
              special->width, Sort::Special};
    }
  }
  reject_operand(o, "an operand that is not known");
}

RegisterSlot Decoder::written(const Operand& o, std::string_view type) {
  RegisterSlot slot = source_operand(o, type);
  if (slot.sort == Sort::Literal || slot.sort == Sort::Special) reject_operand(o, "only registers are written");
  return slot;
}

uint32_t Decoder::exact_operand(const Operand& o, std::string_view type) {
  RegisterSlot slot = source_operand(o, type);
  uint32_t width = ptx::size_of(type);
  if (slot.sort == Sort::Special) reject_operand(o, "only mov reads special registers");
  if (slot.width == width) return slot.offset;
  if (slot.width > width && width >= 2) reject_operand(o, "a register wider than the instruction");
  reject_operand(o, ("a register of another width than " + std::string(type)).c_str());
}

uint32_t Decoder::result(const Operand& o, std::string_view type, bool sink) {
  if (sink && o.text == "_") return scratch_register(std::max(ptx::size_of(type), 2u));
  written(o, type);
  return exact_operand(o, type);
}

uint32_t Decoder::predicate(const Operand& o) {
  if (o.kind == Operand::Literal) return constant(bits(o, "u32") ? kFullMask : 0, 4);
  const RegisterSlot* slot = o.negative || o.offset ? nullptr : find_register(o.text);
  if (!slot || slot->width) reject_operand(o, "no predicate");
  if (!o.inverted) return slot->offset;
  Instruction i;
  i.line = pending_.line, i.execute = invert, i.a = slot->offset, i.d = add_register(0);
  emit(i);
  return i.d;
}

uint32_t Decoder::predicate_result(const Operand& o) {
  if (o.text == "_") return scratch_register(0);
  if (o.inverted || o.kind == Operand::Literal) reject_operand(o, "only registers are written");
  return predicate(o);
}

const Symbol* Decoder::symbol(const std::string& name) {
  for (size_t k = scopes_.size(); k--;) {
    auto found = scopes_[k].variables.find(name);
    if (found != scopes_[k].variables.end()) return &found->second;
  }
  const Symbol* found = symbols_.find(name);
  if (!found || found->space != ptx::StateSpace::Shared) return found;
  program_.shared_align = std::max(program_.shared_align, found->align);
  if (found->dynamic) return found;
  // A kernel has only the shared variables that it names.
  if (uint64_t(program_.shared_bytes) + found->align + found->size > kMaxLocalBytes)
    throw Unsupported(function_.name + ": too much shared memory: " + name);
  const uint32_t at = reserve_shared(name, found->size, std::max(found->align, 16u));
  Symbol& own = scopes_[0].variables[name] = *found;
  own.address = at;
  return &own;
}

// With room behind it, as much as it takes itself, where somebody looks for accesses beyond its end.
uint32_t Decoder::reserve_shared(const std::string& name, uint32_t bytes, uint32_t align) {
  constexpr uint32_t kLeastGuard = 256, kMaxGuard = 4096;
  const uint32_t at = align_up(program_.shared_bytes, align), guard = std::clamp(bytes, kLeastGuard, kMaxGuard);
  program_.shared_align = std::max(program_.shared_align, align);
  if (!bytes) return at;  // what the launch brings, declared in the body
  program_.shared_variables.push_back({name, at, at + bytes});
  program_.shared_bytes = at + bytes;
  if (program_.declared_shared() > kMaxShared)
    throw Unsupported(function_.name + ": more than 48 KiB of shared memory that is declared");
  if (symbols_.guards_shared()) program_.shared_bytes += guard, program_.shared_guards += guard;
  return at;
}

void Decoder::emit(Instruction i) { program_.code.push_back(i), statement_names_.push_back(statement_name_); }

void Decoder::jump(Instruction i, std::string_view label) {
  jumps_.push_back({program_.code.size(), here(label), pending_.line});
  emit(i);
}

uint32_t Decoder::branch_table(std::string_view label) {
  auto [known, fresh] = table_numbers_.try_emplace(here(label), static_cast<uint32_t>(table_numbers_.size()));
  return known->second;
}

uint32_t Decoder::call(CallSite site) {
  program_.calls.push_back(std::move(site));
  return static_cast<uint32_t>(program_.calls.size() - 1);
}

const ptx::Function* Decoder::prototype(std::string_view label) const {
  auto found = prototypes_.find(label);
  return found == prototypes_.end() ? nullptr : &found->second;
}

uint64_t Decoder::take_address(const ptx::Function& function) {
  program_.address_taken.push_back(function.name);
  return ptx::address_of(function);
}

void Decoder::reject(const Statement& s, const char* why) const {
  std::string text(s.op);
  for (std::string_view word : s.qualifiers) text += "." + std::string(word);
  throw Unsupported("line " + std::to_string(s.line) + ": " + why + ": " + text);
}

// Labels become places, constants lie behind the registers.
void Decoder::resolve() {
  auto place_of = [this](const Label& label, uint32_t line) {
    const size_t* found = visible(labels_, label);
    if (!found) throw Unsupported("line " + std::to_string(line) + ": no label " + label.second);
    return *found;
  };
  for (const UnresolvedJump& one : jumps_) program_.code[one.at].imm = static_cast<int64_t>(place_of(one.label, one.line));
  program_.branch_tables.resize(table_numbers_.size());
  for (const auto& [name, number] : table_numbers_) {
    const std::vector<Label>* found = visible(table_labels_, name);
    if (!found) throw Unsupported("no table " + name.second);
    for (const Label& label : *found) program_.branch_tables[number].push_back(static_cast<uint32_t>(place_of(label, 0)));
  }
  program_.register_bytes = align_up(registers_end_, 64);
  program_.local_bytes = align_up(program_.local_bytes, program_.local_align);  // one lane's lie behind another's
  auto settle = [this](uint32_t& offset) {
    if (offset >= kConstants) offset = offset - kConstants + program_.register_bytes;
  };
  for (Instruction& i : program_.code) {
    for (uint32_t* one : {&i.d, &i.a, &i.b, &i.c, &i.e}) settle(*one);
    for (uint32_t& one : i.vector_registers) settle(one);
  }
  program_.constants.resize(align_up(static_cast<uint32_t>(program_.constants.size()), 64));
  mark_register_uses(program_);
  mark_update_loops(program_, statement_names_);
}

}  // namespace vgpu
