// Cubins: ELF files of machine code with functions, constant banks, variables and relocations.  NVIDIA's sections and attributes
// are not documented, but several open projects describe them.
#pragma once
#include <elf.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

struct Cubin {
  // What a relocation refers to: a position in a storage or in a function's code, or a function outside of the module.
  struct Reference {
    enum Kind : uint8_t { ToStorage, ToCode, Outside } kind;
    std::string name;  // of the function
    size_t storage = 0;
    uint64_t addend = 0;  // in the storage, or in the function's code
  };
  // A relocation in a function's code: half of an address, or a call's target.
  struct CodeRelocation {
    enum Field : uint8_t { Unknown, LowWord, HighWord, Target } field;
    uint64_t offset;  // of the instruction, in the function's code
    Reference to;
  };
  struct Parameter { uint32_t offset, size; };
  struct Function {
    std::string name;
    std::string_view code;
    std::map<uint32_t, std::string_view> banks;  // constant banks of this function by number
    uint32_t parameter_base = 0, parameter_bytes = 0;  // in bank 0
    std::vector<Parameter> parameters;  // relative to the base
    uint32_t shared_bytes = 0, shared_align = 16, stack_bytes = 0, registers = 0;
    uint32_t max_threads = 0, required_block[3] = {0, 0, 0};  // of a block; 0: any
    std::vector<CodeRelocation> relocations;
    bool is_kernel = false;
    bool has_callees = false;  // whether code of other functions is linked into its own (sm80/code_layout.h)
    std::map<uint32_t, std::vector<SourceLine>> source_lines;  // by the first offset of their code
  };
  // A section that is allocated in device memory.
  struct Storage {
    std::string name;
    std::string_view initial;  // initial value of the first bytes; the others are zero
    uint64_t size = 0, align = 1;
  };
  struct Variable {
    std::string name;
    size_t storage;
    uint64_t offset, size;
  };
  // A 64-bit address that is written into a storage.
  struct Relocation {
    size_t storage;
    uint64_t offset;
    Reference to;
  };

  uint32_t arch = 0;
  std::vector<Function> functions;
  std::vector<Storage> storages;
  std::vector<Variable> variables;
  std::vector<Relocation> relocations;
};

// Returns the architecture of machine code, such as 80.
uint32_t arch_of_elf(const Elf64_Ehdr& header);

// Reads a cubin; throws InvalidImage if it is damaged.  The result points into the image.
Cubin read_cubin(std::string_view image);

}  // namespace vgpu
