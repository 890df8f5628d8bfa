// A parsed PTX module: its functions, with their bodies as tokens, and its variables.
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
enum class Linkage : uint8_t { Internal, Visible, Weak, Extern };  // Internal: visible only in its own module

// Converts a directive such as .weak to a linkage; returns false if it is not a linkage directive.
bool linkage_of(std::string_view directive, Linkage& linkage);

// One variable, parameter or register declaration.  Sizes in bytes.
struct Declaration {
  StateSpace space = StateSpace::Register;
  Linkage linkage = Linkage::Internal;
  std::string name;
  std::string_view type;  // such as f32
  uint32_t element = 0;   // bytes of one element
  uint32_t size = 0;      // of all of it; 0 with `incomplete`
  uint32_t align = 1;
  bool incomplete = false;   // extern or []: the launch determines its size
  uint32_t count = 0;     // of `.reg .b32 %r<N>`: N
  std::vector<uint32_t> extents;  // of an array; the last one may be the width of a vector (.v2, .v4)
  std::vector<Token> initial;
};

// A parameter or result of a function, at its offset in the parameter space.
struct Parameter {
  std::string name;
  uint32_t offset, size;
  std::string type;         // such as u32; empty: an array, or a vector
  bool in_register = false;  // declared as `.reg .u32 x`
};

struct Function {
  std::string name;
  Linkage linkage = Linkage::Internal;
  bool entry = false;
  bool defined = false;  // has a body in this module
  uint32_t version = UINT32_MAX, target = UINT32_MAX;  // 70 and 75 of the text's .version 7.0 and .target sm_75
  std::vector<Parameter> parameters, results;
  uint32_t parameter_bytes = 0;  // of results, then parameters
  uint32_t max_threads = 0;     // of a block (.maxntid); 0: no limit
  uint32_t required_block[3] = {0, 0, 0};  // the only permitted block size (.reqntid); 0: any
  Token body;                    // with its braces; tokenized when it is decoded
};

struct Module {
  std::string text;  // tokens point into it
  std::unordered_map<std::string, Function> functions;
  std::vector<Declaration> variables;
  std::map<uint32_t, std::string> files;  // by the number that .file declares; empty: texts that were linked disagree
};

// Parses a module.  Throws Unsupported, with the line, if the text is not PTX.
void parse(std::string text, Module& module);

// Parses the signature `(results) name (parameters)` of a function or prototype from tokens[at] on.
Function parse_signature(const std::vector<Token>& tokens, size_t& at);

// Returns the value of a pointer to a function, which is not a device address.
inline uint64_t address_of(const Function& function) { return reinterpret_cast<uint64_t>(&function); }

// Returns the bytes of a type such as u32; 1 for pred, 0 for what is not a type.
uint32_t size_of(std::string_view type);

// Parses the declarations in tokens[at, end), such as `.reg .b32 %r<9>` or `.shared .align 4 .b8 x[8], y[8]`.
std::vector<Declaration> parse_declarations(const std::vector<Token>& tokens, size_t at, size_t end);

bool is_literal(std::string_view text);

}  // namespace vgpu::ptx
