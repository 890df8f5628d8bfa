// Parses the declarations of a PTX module; bodies of functions stay tokens until they are decoded.
#include "module.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "invalid_ptx.h"

namespace vgpu::ptx {
namespace {

constexpr uint64_t kMaxConstants = 64u << 10;  // bytes of a module's .const variables, as on a card
constexpr uint32_t kMaxParameters = 32764;  // bytes: PTX ISA, "Kernel Function Parameters"

[[noreturn]] void reject(const Token& at, const std::string& why) {
  throw InvalidPtx("line " + std::to_string(at.line) + ": " + why + " at '" + std::string(at.text) + "'");
}

uint32_t align_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

StateSpace space_of(std::string_view word, bool& is_space) {
  static const std::map<std::string_view, StateSpace> known = {{".reg", StateSpace::Register}, {".global", StateSpace::Global},
                                                               {".const", StateSpace::Const},  {".shared", StateSpace::Shared},
                                                               {".local", StateSpace::Local},  {".param", StateSpace::Param}};
  auto found = known.find(word);
  is_space = found != known.end();
  return is_space ? found->second : StateSpace::Register;
}

const Token& token_at(const std::vector<Token>& tokens, size_t at) {
  if (at >= tokens.size()) throw InvalidPtx("the text ends too soon");
  return tokens[at];
}

// The mark that closes the one at `open`.
size_t closing(const std::vector<Token>& tokens, size_t open) {
  std::string_view in = tokens[open].text, out = in == "(" ? ")" : "}";
  size_t depth = 0;
  for (size_t k = open; k < tokens.size(); k++) {
    if (tokens[k].text == in) depth++;
    if (tokens[k].text == out && --depth == 0) return k;
  }
  reject(tokens[open], "nothing closes it");
}

uint32_t number(const Token& token) {
  char* end = nullptr;
  std::string text(token.text);
  unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  if (*end == 'U') end++;
  if (end == text.c_str() || *end || value > 1u << 30) reject(token, "no size");
  return static_cast<uint32_t>(value);
}

// Reads a module's text from its first token to its last.
class Parser {
 public:
  Parser(const std::vector<Token>& tokens, Module& module) : tokens_(tokens), module_(module) {}

  void all() {
    while (at_ < tokens_.size()) top();
    constants();
  }

 private:
  void top() {
    const Token& first = tokens_[at_];
    if (first.text == ";") {
      at_++;
      return;
    }
    if (first.text == ".version" || first.text == ".target") made_for(first.text == ".version");
    if (first.text == ".version" || first.text == ".target" || first.text == ".address_size" || first.text == ".file") {
      skip_line();
    } else if (first.text == ".section") {
      while (!is_block(token_at(tokens_, at_))) at_++;
      at_++;
    } else if (is_function()) {
      function();
    } else {
      size_t end = find(";");
      for (Declaration& one : parse_declarations(tokens_, at_, end)) {
        define(tokens_[at_], one.name, one.linkage, false);
        module_.variables.push_back(std::move(one));
      }
      at_ = end + 1;
    }
  }

  // `.version 7.0` or `.target sm_70, texmode_independent`
  void made_for(bool version) {
    if (at_ + 1 >= tokens_.size()) return;
    const std::string word(tokens_[at_ + 1].text);
    unsigned most = 0, least = 0;
    if (version && std::sscanf(word.c_str(), "%2u.%1u", &most, &least) == 2) version_ = 10 * most + least;
    if (!version && std::sscanf(word.c_str(), "sm_%3u", &most) == 1) target_ = most;
  }

  // A name is one thing, and defined once; weak ones stand in each of the texts that were joined.
  void define(const Token& at, const std::string& name, Linkage linkage, bool function) {
    auto [known, fresh] = defined_.try_emplace(name, Definition{linkage, function});
    if (fresh) return;
    Definition& before = known->second;
    auto may_repeat = [](Linkage one) { return one == Linkage::Extern || one == Linkage::Weak; };
    if (before.function != function || !(may_repeat(before.linkage) || may_repeat(linkage)))
      reject(at, name + " is defined twice");
    if (before.linkage == Linkage::Extern) before.linkage = linkage;
  }

  void constants() const {
    uint64_t bytes = 0;
    for (const Declaration& one : module_.variables)
      if (one.space == StateSpace::Const && one.linkage != Linkage::Extern) bytes += one.size;
    if (bytes > kMaxConstants) throw Unsupported("more than 64 KiB of constants");
  }

  void skip_line() {
    uint32_t line = tokens_[at_].line;
    while (at_ < tokens_.size() && tokens_[at_].line == line) at_++;
  }

  static bool is_block(const Token& token) { return token.text[0] == '{'; }

  // Does a function begin here?  Words such as .visible and .weak come before.
  bool is_function() const {
    for (size_t k = at_; k < tokens_.size() && tokens_[k].text != ";" && tokens_[k].text != "=" && !is_block(tokens_[k]); k++)
      if (tokens_[k].text == ".entry" || tokens_[k].text == ".func") return true;
    return false;
  }

  void function() {
    Function f;
    for (; tokens_[at_].text != ".entry" && tokens_[at_].text != ".func"; at_++)
      if (!linkage_of(tokens_[at_].text, f.linkage)) reject(tokens_[at_], "a function cannot begin so");
    bool entry = tokens_[at_++].text == ".entry";
    Linkage linkage = f.linkage;
    f = parse_signature(tokens_, at_);
    f.entry = entry, f.linkage = linkage;
    f.version = version_, f.target = target_;
    while (!is_block(token_at(tokens_, at_)) && tokens_[at_].text != ";") bound(f);
    if (is_block(tokens_[at_])) {
      f.body = tokens_[at_];
      f.defined = true;
    }
    define(tokens_[at_], f.name, f.defined ? f.linkage : Linkage::Extern, true);
    at_++;
    Function& known = module_.functions[f.name];
    if (!known.defined || (f.defined && known.linkage == Linkage::Weak)) known = std::move(f);
  }

  // What a kernel says of its launches: .maxntid 128, 1, 1 and the like.
  void bound(Function& f) {
    std::string_view word = tokens_[at_++].text;
    if (word != ".maxntid" && word != ".reqntid") return;
    uint32_t size[3] = {1, 1, 1}, count = 0;
    while (count < 3 && is_literal(token_at(tokens_, at_).text)) {
      size[count++] = number(tokens_[at_++]);
      if (token_at(tokens_, at_).text == ",") at_++;
    }
    f.most_threads = static_cast<uint32_t>(std::min<uint64_t>(uint64_t(size[0]) * size[1] * size[2], UINT32_MAX));
    if (word == ".reqntid") std::copy_n(size, 3, f.required_block);
  }

  size_t find(std::string_view text) const {
    size_t depth = 0;
    for (size_t k = at_; k < tokens_.size(); k++) {
      if (depth == 0 && tokens_[k].text == text) return k;
      if (tokens_[k].text == "{") depth++;
      if (tokens_[k].text == "}" && depth) depth--;
    }
    reject(tokens_[at_], "no '" + std::string(text) + "' follows");
  }

  struct Definition {
    Linkage linkage;
    bool function;
  };

  const std::vector<Token>& tokens_;
  Module& module_;
  std::map<std::string, Definition> defined_;
  size_t at_ = 0;
  uint32_t version_ = UINT32_MAX, target_ = UINT32_MAX;  // of the text under way: several may have been joined
};

// The tokens of a value; an array without a size has as many elements as its list.
size_t initial(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& one) {
  size_t depth = 0;
  uint32_t elements = 1;
  for (; k < end && (depth || tokens[k].text != ","); k++) {
    if (tokens[k].text == "{" || tokens[k].text == "(") depth++;
    if ((tokens[k].text == "}" || tokens[k].text == ")") && depth) depth--;
    elements += depth == 1 && tokens[k].text == ",";
    one.initial.push_back(tokens[k]);
  }
  if (one.incomplete) one.extents[0] = elements;
  return k;
}

// What follows a name: `<9>`, `[8]`, `[]`, `[2][4]`, `= {1, 2}`.
size_t parse_extents(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& one, uint64_t& elements) {
  one.extents.clear();
  while (k < end && (tokens[k].text == "[" || tokens[k].text == "<")) {
    bool range = tokens[k].text == "<";
    if (++k >= end) throw InvalidPtx("a declaration ends too soon");
    if (tokens[k].text == "]" && !range && one.extents.empty()) one.incomplete = true, one.extents.push_back(0);
    else if (range) one.count = number(tokens[k++]);
    else one.extents.push_back(number(tokens[k++])), elements *= one.extents.back();
    if (elements > 1u << 30) reject(tokens[k - 1], "too large a variable");
    if (k >= end || (tokens[k].text != "]" && tokens[k].text != ">")) throw InvalidPtx("a declaration ends too soon");
    k++;
  }
  return k;
}

size_t parse_declarator_suffix(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& one) {
  uint64_t elements = 1;
  k = parse_extents(tokens, k, end, one, elements);
  if (k < end && tokens[k].text == "=") {
    const size_t mark = k++;
    k = initial(tokens, k, end, one);
    if (one.initial.empty()) reject(tokens[mark], "no initial value");
    if (one.incomplete) elements *= one.extents[0], one.incomplete = false;
  }
  if (elements * one.element > 1u << 30) reject(tokens[k - 1], "too large a variable");
  one.size = one.incomplete ? 0 : static_cast<uint32_t>(elements * one.element);
  const uint32_t width = size_of(one.type);
  if (width && one.element > width) one.extents.push_back(one.element / width);
  return k;
}

std::vector<Parameter> parameters(const std::vector<Token>& tokens, size_t& at, uint32_t& offset) {
  std::vector<Parameter> found;
  size_t end = closing(tokens, at);
  size_t from = at + 1;
  while (from < end) {
    size_t to = from;
    while (to < end && tokens[to].text != ",") to++;
    for (const Declaration& one : parse_declarations(tokens, from, to)) {
      if (uint64_t(offset) + one.align + one.size > kMaxParameters) reject(tokens[from], "too many parameters");
      offset = align_up(offset, one.align);
      const bool scalar = one.size == size_of(one.type) && one.type != "pred";
      if (one.space == StateSpace::Register && !scalar) reject(tokens[from], "a parameter in registers that is no number");
      found.push_back({one.name, offset, one.size, std::string(scalar ? one.type : ""), one.space == StateSpace::Register});
      offset += one.size;
    }
    from = to + 1;
  }
  at = end + 1;
  return found;
}

}  // namespace

Function parse_signature(const std::vector<Token>& tokens, size_t& at) {
  Function f;
  if (token_at(tokens, at).text == "(") f.results = parameters(tokens, at, f.parameter_bytes);
  f.name = token_at(tokens, at++).text;
  if (token_at(tokens, at).text == "(") f.parameters = parameters(tokens, at, f.parameter_bytes);
  return f;
}

void parse(std::string text, Module& module) {
  module.text = std::move(text);
  Parser(tokenize(module.text, true), module).all();
}

uint32_t size_of(std::string_view type) {
  static const std::map<std::string_view, uint32_t> known = {
      {"pred", 1},  {"b8", 1},     {"u8", 1},     {"s8", 1},     {"b16", 2},   {"u16", 2},   {"s16", 2},
      {"f16", 2},   {"bf16", 2},   {"b32", 4},    {"u32", 4},    {"s32", 4},   {"f32", 4},   {"tf32", 4},
      {"f16x2", 4}, {"bf16x2", 4}, {"e4m3x2", 2}, {"e5m2x2", 2}, {"u16x2", 4}, {"s16x2", 4}, {"b64", 8},
      {"u64", 8},   {"s64", 8},    {"f64", 8},    {"f32x2", 8},  {"b128", 16}};
  auto found = known.find(type);
  return found == known.end() ? 0 : found->second;
}

bool linkage_of(std::string_view word, Linkage& linkage) {
  if (word == ".visible") linkage = Linkage::Visible;
  else if (word == ".weak" || word == ".common") linkage = Linkage::Weak;
  else if (word == ".extern") linkage = Linkage::Extern;
  else return false;
  return true;
}

// `.attribute(.managed)`: the host's, too, as all memory is here.  Its last token.
static size_t managed(const std::vector<Token>& tokens, size_t k, size_t end) {
  if (k + 3 >= end || tokens[k + 1].text != "(" || tokens[k + 2].text != ".managed" || tokens[k + 3].text != ")")
    reject(tokens[k], "an attribute that is not known");
  return k + 3;
}

namespace {

size_t parse_alignment(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& common) {
  common.align = k + 1 < end ? number(tokens[++k]) : 1;
  if (!common.align || (common.align & (common.align - 1))) reject(tokens[k], "an alignment that is no power of two");
  return k;
}

// What stands before the names: `.global .align 8 .v2 .f32`.  `k` is behind it afterwards.
Declaration parse_specifiers(const std::vector<Token>& tokens, size_t& k, size_t end) {
  const size_t at = k;
  Declaration common;
  uint32_t vector = 1;
  bool spaced = false;
  for (; k < end && tokens[k].text[0] == '.'; k++) {
    std::string_view word = tokens[k].text;
    bool is_space;
    StateSpace space = space_of(word, is_space);
    if (is_space && spaced) continue;  // `.param .u64 .ptr .global`: the parameter's own space came first
    if (is_space) common.space = space, spaced = true;
    else if (word == ".align") k = parse_alignment(tokens, k, end, common);
    else if (word == ".attribute") k = managed(tokens, k, end);
    else if (word == ".v2") vector = 2;
    else if (word == ".v4") vector = 4;
    else if (uint32_t size = size_of(word.substr(1))) common.type = word.substr(1), common.element = size;
    else if (word == ".texref" || word == ".surfref" || word == ".samplerref")
      throw Unsupported("line " + std::to_string(tokens[k].line) +
                        ": a texture or surface reference: only objects by a handle are there");
    else if (!linkage_of(word, common.linkage) && word != ".ptr" && word != ".managed")
      reject(tokens[k], "a declaration that is not known");
  }
  if (k >= end || !spaced || !common.element) reject(tokens[at < tokens.size() ? at : tokens.size() - 1], "no declaration");
  common.element *= vector;
  if (common.align < common.element) common.align = common.element;
  return common;
}

}  // namespace

std::vector<Declaration> parse_declarations(const std::vector<Token>& tokens, size_t at, size_t end) {
  size_t k = at;
  const Declaration common = parse_specifiers(tokens, k, end);
  std::vector<Declaration> found;
  while (k < end) {
    Declaration one = common;
    if (is_literal(tokens[k].text) || !is_word(tokens[k].text[0])) reject(tokens[k], "no name");
    one.name = tokens[k++].text;
    k = parse_declarator_suffix(tokens, k, end, one);
    if (one.linkage == Linkage::Extern && one.space == StateSpace::Shared) one.incomplete = true;
    found.push_back(std::move(one));
    if (k < end && tokens[k].text != ",") reject(tokens[k], "no declaration");
    k++;
  }
  return found;
}

bool is_literal(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }

}  // namespace vgpu::ptx
