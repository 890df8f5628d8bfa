// Scalar video instructions: PTX ISA, "Scalar Video Instructions".  Their operands are words, or a byte or a half of one.
#include <cstring>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// Where a part begins, and its bits: %r1.b2 are 8 from 16 on.
struct Part { uint8_t from, bits; };

// Takes the selector off the operand's name; false where it is none.
bool take_part(Operand& o, Part& part) {
  size_t dot = o.text.rfind('.');
  part = {0, 32};
  if (dot == o.text.npos || dot == 0) return true;
  std::string_view word = o.text.substr(dot + 1);
  if (word.size() != 2 || (word[0] != 'b' && word[0] != 'h')) return false;
  uint8_t number = static_cast<uint8_t>(word[1] - '0'), bits = word[0] == 'b' ? 8 : 16;
  if (number * bits >= 32) return false;
  part = {static_cast<uint8_t>(number * bits), bits};
  o.text = o.text.substr(0, dot), o.kind = Operand::Register;
  return true;
}

uint32_t value(uint32_t word, Part part, bool is_signed) {
  uint32_t top = word << (32 - part.from - part.bits);
  return is_signed ? uint32_t(int32_t(top) >> (32 - part.bits)) : top >> (32 - part.bits);
}

// d = a * b + c, of which the low 32 bits are the same with and without signs; imm: the parts; mode: whose sign counts.
void vmad(Lanes& w, const Instruction& i) {
  uint32_t *d = lanes_of<uint32_t>(w, i.d), *a = lanes_of<uint32_t>(w, i.a), *b = lanes_of<uint32_t>(w, i.b),
           *c = lanes_of<uint32_t>(w, i.c);
  Part parts[2];
  std::memcpy(parts, &i.imm, sizeof parts);
  Part first = parts[0], second = parts[1];
  bool signed_a = i.mode & 1, signed_b = i.mode & 2;
  each(w.mask, [=](uint32_t l) { d[l] = value(a[l], first, signed_a) * value(b[l], second, signed_b) + c[l]; });
}

}  // namespace

bool decode_video(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op != "vmad" || s.words.size() != 3 || s.operands.size() != 4) return false;
  for (std::string_view type : s.words) if (type != "u32" && type != "s32") return false;
  Operand a = s.operands[1], b = s.operands[2];
  Part parts[2];
  if (a.negative || b.negative || !take_part(a, parts[0]) || !take_part(b, parts[1])) return false;
  std::memcpy(&i.imm, parts, sizeof parts);
  i.mode = (s.words[1] == "s32") | (s.words[2] == "s32") << 1;
  i.run = vmad;
  i.d = d.result(s.operands[0], "u32");
  i.a = d.exact(a, "u32");
  i.b = d.exact(b, "u32");
  i.c = d.exact(s.operands[3], "u32");
  d.emit(i);
  return true;
}

}  // namespace vgpu
