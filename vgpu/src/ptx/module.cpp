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

constexpr uint64_t kMaxConstants = 64u << 10;  // bytes of a module's .const variables
constexpr uint32_t kMaxParameters = 32764;  // bytes: PTX ISA, "Kernel Function Parameters"

[[noreturn]] void reject(const Token& token, const std::string& why) {
  throw InvalidPtx("line " + std::to_string(token.line) + ": " + why + " at '" + std::string(token.text) + "'");
}

uint32_t align_up(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

StateSpace space_of(std::string_view directive, bool& is_space) {
  static const std::map<std::string_view, StateSpace> spaces = {{".reg", StateSpace::Register}, {".global", StateSpace::Global},
                                                                {".const", StateSpace::Const},  {".shared", StateSpace::Shared},
                                                                {".local", StateSpace::Local},  {".param", StateSpace::Param}};
  auto entry = spaces.find(directive);
  is_space = entry != spaces.end();
  return is_space ? entry->second : StateSpace::Register;
}

const Token& token_at(const std::vector<Token>& tokens, size_t at) {
  if (at >= tokens.size()) throw InvalidPtx("the text ends too soon");
  return tokens[at];
}

// Returns the position of the token that closes the parenthesis or brace at `open`.
size_t closing_token(const std::vector<Token>& tokens, size_t open) {
  std::string_view opening = tokens[open].text, closing = opening == "(" ? ")" : "}";
  size_t depth = 0;
  for (size_t k = open; k < tokens.size(); k++) {
    if (tokens[k].text == opening) depth++;
    if (tokens[k].text == closing && --depth == 0) return k;
  }
  reject(tokens[open], "nothing closes it");
}

uint32_t parse_size(const Token& token) {
  char* end = nullptr;
  std::string text(token.text);
  unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  if (*end == 'U') end++;
  if (end == text.c_str() || *end || value > 1u << 30) reject(token, "no size");
  return static_cast<uint32_t>(value);
}

// Parses the tokens of a module.
constexpr uint32_t kNewestVersion = 90;  // PTX 9.0, of the driver's CUDA 13.0 (cuDriverGetVersion)

class Parser {
 public:
  Parser(const std::vector<Token>& tokens, Module& module) : tokens_(tokens), module_(module) {}

  void parse_module() {
    while (at_ < tokens_.size()) parse_top_level();
    check_constants();
  }

 private:
  void parse_top_level() {
    const Token& first = tokens_[at_];
    if (first.text == ";") {
      at_++;
      return;
    }
    if (first.text != ".version" && first.text != ".target" && !has_target_) reject(first, "code before its .target");
    if (first.text == ".file") parse_file();
    if (first.text == ".version" || first.text == ".target") parse_version_or_target(first.text == ".version");
    if (first.text == ".version" || first.text == ".target" || first.text == ".address_size" || first.text == ".file") {
      skip_line();
    } else if (first.text == ".section") {
      while (!is_block(token_at(tokens_, at_))) at_++;
      at_++;
    } else if (is_function()) {
      parse_function();
    } else {
      size_t end = find(";");
      for (Declaration& declaration : parse_declarations(tokens_, at_, end)) {
        if (!declaration.size && declaration.linkage != Linkage::Extern) reject(first, "a variable without a size");
        define(tokens_[at_], declaration.name, declaration.linkage, false);
        module_.variables.push_back(std::move(declaration));
      }
      at_ = end + 1;
    }
  }

  // `.file 1 "a.cu"`, perhaps with a time and a size
  void parse_file() {
    if (at_ + 2 >= tokens_.size() || tokens_[at_ + 2].text[0] != '"') return;
    const std::string_view quoted = tokens_[at_ + 2].text;
    const std::string name(quoted.substr(1, quoted.size() - 2));
    const auto number = static_cast<uint32_t>(std::strtoul(std::string(tokens_[at_ + 1].text).c_str(), nullptr, 10));
    const auto [file, is_new] = module_.files.try_emplace(number, name);
    if (!is_new && file->second != name) file->second.clear();
  }

  // `.version 7.0` or `.target sm_70, texmode_independent`
  void parse_version_or_target(bool version) {
    if (at_ + 1 >= tokens_.size()) return;
    const std::string value(tokens_[at_ + 1].text);
    unsigned major = 0, minor = 0;
    if (version && std::sscanf(value.c_str(), "%2u.%1u", &major, &minor) == 2) {
      version_ = 10 * major + minor;
      if (version_ > kNewestVersion) throw UnsupportedPtxVersion("PTX " + value + ", which is newer than the driver");
      return;
    }
    int digits = 0;
    if (version || (std::sscanf(value.c_str(), "sm_%3u%n", &major, &digits) != 1 &&
                    std::sscanf(value.c_str(), "compute_%3u%n", &major, &digits) != 1))
      reject(tokens_[at_ + 1], "no such version or target");
    const std::string suffix = value.substr(static_cast<size_t>(digits));
    if (version_ == UINT32_MAX || version_ < version_of_target(major, suffix))
      reject(tokens_[at_ + 1], "no target of this version of PTX");
    has_target_ = true;
    if (value[0] == 's') target_ = major;
  }

  // Returns the PTX version since which there is a target, such as 70 for sm_80.  suffix: a or f, as of sm_90a.
  static uint32_t version_of_target(uint32_t target, const std::string& suffix) {
    static const std::map<uint32_t, uint32_t> since = {{20, 20}, {30, 30},  {32, 40},  {35, 31},  {37, 41},  {50, 40},
                                                       {52, 41}, {53, 42},  {60, 50},  {61, 50},  {62, 50},  {70, 60},
                                                       {72, 61}, {75, 63},  {80, 70},  {86, 71},  {87, 74},  {89, 78},
                                                       {90, 78}, {100, 86}, {101, 86}, {103, 88}, {120, 87}, {121, 88}};
    const auto entry = since.find(target);
    const uint32_t of_number = entry == since.end() ? 0 : entry->second;
    if (suffix.empty()) return of_number;
    if (suffix == "a" && target >= 90) return std::max(of_number, 80u);
    return suffix == "f" && target >= 100 ? 88 : UINT32_MAX;
  }

  // Records a definition.  Names are unique; weak ones may occur in each of the texts that were linked.
  void define(const Token& token, const std::string& name, Linkage linkage, bool is_function_name) {
    auto [entry, is_new] = defined_.try_emplace(name, Definition{linkage, is_function_name});
    if (is_new) return;
    Definition& existing = entry->second;
    auto may_repeat = [](Linkage linkage_kind) { return linkage_kind == Linkage::Extern || linkage_kind == Linkage::Weak; };
    if (existing.is_function != is_function_name || !(may_repeat(existing.linkage) || may_repeat(linkage)))
      reject(token, name + " is defined twice");
    if (existing.linkage == Linkage::Extern) existing.linkage = linkage;
  }

  void check_constants() const {
    uint64_t bytes = 0;
    for (const Declaration& variable : module_.variables)
      if (variable.space == StateSpace::Const && variable.linkage != Linkage::Extern) bytes += variable.size;
    if (bytes > kMaxConstants) throw Unsupported("more than 64 KiB of constants");
  }

  void skip_line() {
    uint32_t line = tokens_[at_].line;
    while (at_ < tokens_.size() && tokens_[at_].line == line) at_++;
  }

  static bool is_block(const Token& token) { return token.text[0] == '{'; }

  // Returns whether a function begins here, perhaps with directives such as .visible.
  bool is_function() const {
    for (size_t k = at_; k < tokens_.size() && tokens_[k].text != ";" && tokens_[k].text != "=" && !is_block(tokens_[k]); k++)
      if (tokens_[k].text == ".entry" || tokens_[k].text == ".func") return true;
    return false;
  }

  void parse_function() {
    Function f;
    for (; tokens_[at_].text != ".entry" && tokens_[at_].text != ".func"; at_++)
      if (!linkage_of(tokens_[at_].text, f.linkage)) reject(tokens_[at_], "a function cannot begin so");
    bool entry = tokens_[at_++].text == ".entry";
    Linkage linkage = f.linkage;
    f = parse_signature(tokens_, at_);
    f.entry = entry, f.linkage = linkage;
    f.version = version_, f.target = target_;
    while (!is_block(token_at(tokens_, at_)) && tokens_[at_].text != ";") parse_bound(f);
    if (is_block(tokens_[at_])) {
      f.body = tokens_[at_];
      f.defined = true;
    }
    define(tokens_[at_], f.name, f.defined ? f.linkage : Linkage::Extern, true);
    at_++;
    Function& existing = module_.functions[f.name];
    if (!existing.defined || (f.defined && existing.linkage == Linkage::Weak)) existing = std::move(f);
  }

  // Parses a directive that bounds launches, such as .maxntid 128, 1, 1; ignores others.
  void parse_bound(Function& f) {
    std::string_view directive = tokens_[at_++].text;
    if (directive != ".maxntid" && directive != ".reqntid") return;
    uint32_t size[3] = {1, 1, 1}, count = 0;
    while (count < 3 && is_literal(token_at(tokens_, at_).text)) {
      if (!(size[count++] = parse_size(tokens_[at_++]))) reject(tokens_[at_ - 1], "a bound of no threads");
      if (token_at(tokens_, at_).text == ",") at_++;
    }
    f.max_threads = static_cast<uint32_t>(std::min<uint64_t>(uint64_t(size[0]) * size[1] * size[2], UINT32_MAX));
    if (directive == ".reqntid") std::copy_n(size, 3, f.required_block);
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
    bool is_function;
  };

  const std::vector<Token>& tokens_;
  Module& module_;
  std::map<std::string, Definition> defined_;
  size_t at_ = 0;
  uint32_t version_ = UINT32_MAX, target_ = UINT32_MAX;  // of the current text; several may have been linked
  bool has_target_ = false;
};

// Parses an initial value; an array without a size gets the number of elements of its list.
size_t parse_initial(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& declaration) {
  size_t depth = 0;
  uint32_t elements = 1;
  for (; k < end && (depth || tokens[k].text != ","); k++) {
    if (tokens[k].text == "{" || tokens[k].text == "(") depth++;
    if ((tokens[k].text == "}" || tokens[k].text == ")") && depth) depth--;
    elements += depth == 1 && tokens[k].text == ",";
    declaration.initial.push_back(tokens[k]);
  }
  if (declaration.incomplete) declaration.extents[0] = elements;
  return k;
}

// Parses what follows a name: `<9>`, `[8]`, `[]`, `[2][4]`.
size_t parse_extents(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& declaration, uint64_t& elements) {
  declaration.extents.clear();
  while (k < end && (tokens[k].text == "[" || tokens[k].text == "<")) {
    bool is_range = tokens[k].text == "<";
    if (++k >= end) throw InvalidPtx("a declaration ends too soon");
    if (tokens[k].text == "]" && !is_range && declaration.extents.empty())
      declaration.incomplete = true, declaration.extents.push_back(0);
    else if (is_range) declaration.count = parse_size(tokens[k++]);
    else declaration.extents.push_back(parse_size(tokens[k++])), elements *= declaration.extents.back();
    if (elements > 1u << 30) reject(tokens[k - 1], "too large a variable");
    if (k >= end || (tokens[k].text != "]" && tokens[k].text != ">")) throw InvalidPtx("a declaration ends too soon");
    k++;
  }
  return k;
}

size_t parse_declarator_suffix(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& declaration) {
  uint64_t elements = 1;
  k = parse_extents(tokens, k, end, declaration, elements);
  if (k < end && tokens[k].text == "=") {
    const size_t mark = k++;
    k = parse_initial(tokens, k, end, declaration);
    if (declaration.initial.empty()) reject(tokens[mark], "no initial value");
    if (declaration.incomplete) elements *= declaration.extents[0], declaration.incomplete = false;
  }
  if (declaration.type == "pred" && declaration.space != StateSpace::Register) reject(tokens[k - 1], "a predicate in memory");
  if (elements * declaration.element > 1u << 30) reject(tokens[k - 1], "too large a variable");
  declaration.size = declaration.incomplete ? 0 : static_cast<uint32_t>(elements * declaration.element);
  const uint32_t width = size_of(declaration.type);
  if (width && declaration.element > width) declaration.extents.push_back(declaration.element / width);
  return k;
}

std::vector<Parameter> parse_parameters(const std::vector<Token>& tokens, size_t& at, uint32_t& offset) {
  std::vector<Parameter> result;
  size_t end = closing_token(tokens, at);
  size_t begin = at + 1;
  while (begin < end) {
    size_t separator = begin;
    while (separator < end && tokens[separator].text != ",") separator++;
    for (const Declaration& declaration : parse_declarations(tokens, begin, separator)) {
      const uint64_t begins_at = align_up(offset, declaration.align);
      if (begins_at + declaration.size > kMaxParameters) reject(tokens[begin], "too many parameters");
      offset = static_cast<uint32_t>(begins_at);
      const bool is_scalar = declaration.size == size_of(declaration.type) && declaration.type != "pred";
      if (declaration.space == StateSpace::Register && !is_scalar)
        reject(tokens[begin], "a parameter in registers that is no number");
      result.push_back({declaration.name, offset, declaration.size, std::string(is_scalar ? declaration.type : ""),
                        declaration.space == StateSpace::Register});
      offset += declaration.size;
    }
    begin = separator + 1;
  }
  at = end + 1;
  return result;
}

}  // namespace

Function parse_signature(const std::vector<Token>& tokens, size_t& at) {
  Function f;
  if (token_at(tokens, at).text == "(") f.results = parse_parameters(tokens, at, f.parameter_bytes);
  f.name = token_at(tokens, at++).text;
  if (token_at(tokens, at).text == "(") f.parameters = parse_parameters(tokens, at, f.parameter_bytes);
  return f;
}

void parse(std::string text, Module& module) {
  module.text = std::move(text);
  Parser(tokenize(module.text, true), module).parse_module();
}

uint32_t size_of(std::string_view type) {
  static const std::map<std::string_view, uint32_t> sizes = {
      {"pred", 1},  {"b8", 1},     {"u8", 1},     {"s8", 1},     {"b16", 2},   {"u16", 2},   {"s16", 2},
      {"f16", 2},   {"bf16", 2},   {"b32", 4},    {"u32", 4},    {"s32", 4},   {"f32", 4},   {"tf32", 4},
      {"f16x2", 4}, {"bf16x2", 4}, {"e4m3x2", 2}, {"e5m2x2", 2}, {"u16x2", 4}, {"s16x2", 4}, {"b64", 8},
      {"u64", 8},   {"s64", 8},    {"f64", 8},    {"f32x2", 8},  {"b128", 16}};
  auto entry = sizes.find(type);
  return entry == sizes.end() ? 0 : entry->second;
}

bool linkage_of(std::string_view directive, Linkage& linkage) {
  if (directive == ".visible") linkage = Linkage::Visible;
  else if (directive == ".weak" || directive == ".common") linkage = Linkage::Weak;
  else if (directive == ".extern") linkage = Linkage::Extern;
  else return false;
  return true;
}

// Skips `.attribute(.managed)`, as the host can access all memory; returns the position of its last token.
static size_t skip_managed_attribute(const std::vector<Token>& tokens, size_t k, size_t end) {
  if (k + 3 >= end || tokens[k + 1].text != "(" || tokens[k + 2].text != ".managed" || tokens[k + 3].text != ")")
    reject(tokens[k], "an attribute that is not known");
  return k + 3;
}

namespace {

size_t parse_alignment(const std::vector<Token>& tokens, size_t k, size_t end, Declaration& common) {
  common.align = k + 1 < end ? parse_size(tokens[++k]) : 1;
  if (!common.align || (common.align & (common.align - 1))) reject(tokens[k], "an alignment that is no power of two");
  return k;
}

// Parses the specifiers before the names, such as `.global .align 8 .v2 .f32`, and moves `k` behind them.
Declaration parse_specifiers(const std::vector<Token>& tokens, size_t& k, size_t end) {
  const size_t begin = k;
  Declaration common;
  uint32_t vector = 1;
  bool has_space = false;
  for (; k < end && tokens[k].text[0] == '.'; k++) {
    std::string_view directive = tokens[k].text;
    bool is_space;
    StateSpace space = space_of(directive, is_space);
    if (is_space && has_space) continue;  // `.param .u64 .ptr .global`: the parameter's own space came first
    if (is_space) common.space = space, has_space = true;
    else if (directive == ".align") k = parse_alignment(tokens, k, end, common);
    else if (directive == ".attribute") k = skip_managed_attribute(tokens, k, end);
    else if (directive == ".v2") vector = 2;
    else if (directive == ".v4") vector = 4;
    else if (uint32_t size = size_of(directive.substr(1))) common.type = directive.substr(1), common.element = size;
    else if (directive == ".texref" || directive == ".surfref" || directive == ".samplerref")
      throw Unsupported("line " + std::to_string(tokens[k].line) +
                        ": a texture or surface reference: only objects by a handle are there");
    else if (!linkage_of(directive, common.linkage) && directive != ".ptr" && directive != ".managed")
      reject(tokens[k], "a declaration that is not known");
  }
  if (k >= end || !has_space || !common.element)
    reject(tokens[begin < tokens.size() ? begin : tokens.size() - 1], "no declaration");
  common.element *= vector;
  if (common.align < common.element) common.align = common.element;
  return common;
}

}  // namespace

std::vector<Declaration> parse_declarations(const std::vector<Token>& tokens, size_t at, size_t end) {
  size_t k = at;
  const Declaration common = parse_specifiers(tokens, k, end);
  std::vector<Declaration> result;
  while (k < end) {
    Declaration declaration = common;
    if (is_literal(tokens[k].text) || !is_word_character(tokens[k].text[0])) reject(tokens[k], "no name");
    declaration.name = tokens[k++].text;
    k = parse_declarator_suffix(tokens, k, end, declaration);
    if (declaration.linkage == Linkage::Extern && declaration.space == StateSpace::Shared) declaration.incomplete = true;
    result.push_back(std::move(declaration));
    if (k < end && tokens[k].text != ",") reject(tokens[k], "no declaration");
    k++;
  }
  return result;
}

bool is_literal(std::string_view text) {
  const size_t first = text.size() > 1 && text[0] == '.' ? 1 : 0;  // .5
  return text.size() > first && text[first] >= '0' && text[first] <= '9';
}

}  // namespace vgpu::ptx
