// A PTX module as its text declares it: functions with the tokens of their bodies, and variables.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lexer.h"

namespace vgpu::ptx {

enum class StateSpace : uint8_t { Register, Global, Const, Shared, Local, Param };
enum class Linkage : uint8_t { Internal, Visible, Weak, Extern };  // who sees a name: its module alone, or all

// The linkage that a word such as .weak names; false: it names none.
bool linkage_of(std::string_view word, Linkage& linkage);

// One variable, parameter or register declaration.  Sizes in bytes.
struct Declaration {
  StateSpace space = StateSpace::Register;
  Linkage linkage = Linkage::Internal;
  std::string name;
  std::string_view type;  // such as f32
  uint32_t element = 0;   // bytes of one element
  uint32_t size = 0;      // of all of it; 0 with `incomplete`
  uint32_t align = 1;
  bool incomplete = false;   // extern or []: its size comes with the launch
  uint32_t count = 0;     // of `.reg .b32 %r<N>`: N
  std::vector<uint32_t> extents;  // of an array, and of what .v2 makes of each element
  std::vector<Token> initial;
};

// Where a parameter lies among a function's.
struct Parameter {
  std::string name;
  uint32_t offset, size;
  std::string type;         // such as u32; empty: an array, or a vector
  bool in_register = false;  // `.reg .u32 x`: the function has it in a register
};

struct Function {
  std::string name;
  Linkage linkage = Linkage::Internal;
  bool entry = false;
  bool defined = false;  // has a body here
  uint32_t version = UINT32_MAX, target = UINT32_MAX;  // 70 and 75 of the text's .version 7.0 and .target sm_75
  std::vector<Parameter> parameters, results;
  uint32_t parameter_bytes = 0;  // of both, results first
  uint32_t most_threads = 0;     // of a block (.maxntid), where it says so
  uint32_t required_block[3] = {0, 0, 0};  // the one block that it may have (.reqntid); 0: any
  Token body;                    // with its braces: read when it is decoded
};

struct Module {
  std::string text;  // owns what the tokens point into
  std::unordered_map<std::string, Function> functions;
  std::vector<Declaration> variables;
};

// Unsupported, with the line, where the text is no PTX.
void parse(std::string text, Module& module);

// What a function or a prototype declares from tokens[at] on: (results) name (parameters).
Function parse_signature(const std::vector<Token>& tokens, size_t& at);

// What stands for a function where a program takes its address: nothing lies there that could be read.
inline uint64_t address_of(const Function& function) { return reinterpret_cast<uint64_t>(&function); }

// Bytes of a type such as u32; 0 for what is none.  A predicate has 1.
uint32_t size_of(std::string_view type);

// The declaration in tokens[at, end), such as `.reg .b32 %r<9>` or `.shared .align 4 .b8 x[8]`, of which several may share
// the words before the names.
std::vector<Declaration> parse_declarations(const std::vector<Token>& tokens, size_t at, size_t end);

bool is_literal(std::string_view text);

}  // namespace vgpu::ptx
