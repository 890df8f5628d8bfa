// Texts and JSON that the reports of several analyses contain.
#pragma once
#include <string>

#include "core/code_position.h"

namespace vgpu {

std::string json_string(const std::string& text);
// Returns an object with the members function, line, and source: a list such as ["inlined.h:9", "a.cu:3"].
std::string json_position(const CodePosition& position);
// Describes a position in the code of a kernel, such as "line 30 (a.cu:3)"; with the function if this is another one.
std::string describe(const CodePosition& position, const std::string& kernel);

}  // namespace vgpu
