// Formats texts and JSON for reports.
#include "report_text.h"

namespace vgpu {
namespace {

std::string text_of(const SourceLine& line) { return line.file + ":" + std::to_string(line.line); }

}  // namespace

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

std::string json_position(const CodePosition& position) {
  std::string source;
  for (const SourceLine& line : position.source) source += (source.empty() ? "" : ", ") + json_string(text_of(line));
  return "{\"function\": " + json_string(position.function) + ", \"line\": " + std::to_string(position.line) +
         ", \"source\": [" + source + "]}";
}

std::string describe(const CodePosition& position, const std::string& kernel) {
  std::string text = position.unit + (" " + std::to_string(position.line));
  if (position.function != kernel) text += " of " + position.function;
  for (size_t k = 0; k < position.source.size(); k++) text += (k ? ", inlined at " : " (") + text_of(position.source[k]);
  return text + (position.source.empty() ? "" : ")");
}

}  // namespace vgpu
