// The source lines of a function, from the directives .loc in its body.
#pragma once
#include <array>
#include <functional>

#include "core/instruction_set.h"
#include "lexer.h"

namespace vgpu::ptx {

class SourceLines {
 public:
  using FileName = std::function<std::string(uint32_t)>;  // of a number that .file declares; empty: unknown
  explicit SourceLines(FileName file_name) : file_name_(std::move(file_name)) {}

  // Adds tokens[begin, end): `.loc FILE LINE COLUMN`, perhaps with `, function_name NAME, inlined_at FILE LINE COLUMN`.
  void add(const std::vector<Token>& tokens, size_t begin, size_t end);
  std::map<uint32_t, std::vector<SourceLine>> take() { return std::move(lines_); }  // DecodedFunction::source_lines

 private:
  using Place = std::array<uint32_t, 3>;  // number of the file, line, column

  FileName file_name_;
  std::map<Place, Place> call_places_;  // of inlined code: where it was inlined
  std::map<uint32_t, std::vector<SourceLine>> lines_;
};

}  // namespace vgpu::ptx
