// Checks that each statement of a module names a known instruction, as a card's driver does at load.
#include "instruction_names.h"

#include <set>

#include "invalid_ptx.h"

namespace vgpu::ptx {
namespace {

// PTX ISA 9.0, "Instruction Set", up to the first dot.
const std::set<std::string_view> kNames = {"abs",          "activemask",    "add",       "addc",       "alloca",
                                           "and",          "applypriority", "atom",      "bar",        "barrier",
                                           "bfe",          "bfi",           "bfind",     "bmsk",       "bra",
                                           "brev",         "brkpt",         "brx",       "call",       "clusterlaunchcontrol",
                                           "clz",          "cnot",          "copysign",  "cos",        "cp",
                                           "createpolicy", "cvt",           "cvta",      "discard",    "div",
                                           "dp2a",         "dp4a",          "elect",     "ex2",        "exit",
                                           "fence",        "fma",           "fns",       "getctarank", "griddepcontrol",
                                           "isspacep",     "istypep",       "ld",        "ldmatrix",   "ldu",
                                           "lg2",          "lop3",          "mad",       "mad24",      "madc",
                                           "mapa",         "match",         "max",       "mbarrier",   "membar",
                                           "min",          "mma",           "mov",       "movmatrix",  "mul",
                                           "mul24",        "multimem",      "nanosleep", "neg",        "not",
                                           "or",           "pmevent",       "popc",      "prefetch",   "prefetchu",
                                           "prmt",         "rcp",           "red",       "redux",      "rem",
                                           "ret",          "rsqrt",         "sad",       "selp",       "set",
                                           "setmaxnreg",   "setp",          "shf",       "shfl",       "shl",
                                           "shr",          "sin",           "slct",      "sqrt",       "st",
                                           "stackrestore", "stacksave",     "stmatrix",  "sub",        "subc",
                                           "suld",         "suq",           "sured",     "sust",       "szext",
                                           "tanh",         "tcgen05",       "tensormap", "testp",      "tex",
                                           "tld4",         "trap",          "txq",       "vabsdiff",   "vabsdiff2",
                                           "vabsdiff4",    "vadd",          "vadd2",     "vadd4",      "vavrg2",
                                           "vavrg4",       "vmad",          "vmax",      "vmax2",      "vmax4",
                                           "vmin",         "vmin2",         "vmin4",     "vote",       "vset",
                                           "vset2",        "vset4",         "vshl",      "vshr",       "vsub",
                                           "vsub2",        "vsub4",         "wgmma",     "wmma",       "xor"};

// The index behind the token that ends a statement, which may contain lists in braces.
size_t behind_statement(const std::vector<Token>& tokens, size_t at) {
  for (size_t depth = 0; at < tokens.size() && (depth || tokens[at].text != ";"); at++)
    depth += tokens[at].text == "{" ? 1 : tokens[at].text == "}" && depth ? size_t(-1) : 0;
  return at + 1;
}
size_t behind_line(const std::vector<Token>& tokens, size_t at) {
  const uint32_t line = tokens[at].line;
  while (at < tokens.size() && tokens[at].line == line) at++;
  return at;
}
size_t behind_guard(const std::vector<Token>& tokens, size_t at) {
  return at + (at + 1 < tokens.size() && tokens[at + 1].text == "!" ? 3 : 2);
}

void check(const std::vector<Token>& tokens) {
  for (size_t at = 0; at < tokens.size();) {
    const std::string_view text = tokens[at].text;
    auto is_colon = [&](size_t k) { return k < tokens.size() && tokens[k].text == ":"; };
    const bool is_label = is_colon(at + 1) && !is_colon(at + 2) && text[0] != '.';  // excludes ld.shared::cta
    if (text == "{" || text == "}" || text == ";") at++;
    else if (is_label) at += 2;
    else if (text == ".loc" || text == ".file") at = behind_line(tokens, at);
    else if (text == "@") at = behind_guard(tokens, at);
    else {
      if (text[0] != '.' && !kNames.count(text.substr(0, text.find('.'))))
        throw InvalidPtx("line " + std::to_string(tokens[at].line) + ": no instruction of PTX: " + std::string(text));
      at = behind_statement(tokens, at);
    }
  }
}

}  // namespace

void check_instruction_names(const Module& module) {
  for (const auto& [name, function] : module.functions)
    if (function.defined)
      check(tokenize(function.body.text.substr(1, function.body.text.size() - 2), false, function.body.line));
}

}  // namespace vgpu::ptx
