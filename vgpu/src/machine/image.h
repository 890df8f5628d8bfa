// A loaded module: its variables in the device's memory, its functions decoded when first used.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "../isa/decoder.h"
#include "memory.h"

namespace vgpu {

class Image : public Symbols {
 public:
  // Unsupported: the text is no PTX, or there is no memory for its variables.
  Image(std::string text, Memory& memory);
  ~Image() override;
  Image(const Image&) = delete;

  // Unsupported, with the line: an instruction that is not known.  nullptr: no function of that name.
  const Program* program(const std::string& name);
  const ptx::Function* function(const std::string& name) const override;
  const Symbol* find(const std::string& name) const override;
  std::vector<std::string> entries() const;  // the kernels' names, in their order

 private:
  void place(const ptx::Declaration& one);
  void initialize(const ptx::Declaration& one, uint8_t* at) const;

  Memory& memory_;
  ptx::Module module_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::unordered_map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace vgpu
