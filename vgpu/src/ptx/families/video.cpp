// Video instructions: PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions".  Operands are words, or a byte or
// a half of one; of the latter two or four at once, picked from both operands.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum Op : uint8_t { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kShl, kShr, kSet, kMad };
enum Second : uint8_t { kNone, kSum, kLeast, kGreatest };
enum Relation : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr uint8_t kSignedA = 1, kSignedB = 2, kSignedD = 4, kSaturates = 8, kWraps = 16;
constexpr uint8_t kNegativeProduct = 1, kNegativeAddend = 2, kPlusOne = 4;

// All that a form says, in the place of an instruction's `imm`.
struct Form {
  Op op;
  uint8_t flags;
  uint16_t a, b;  // scalar: a part's code; SIMD: for each part which of the two operands' it is, four bits each
  uint8_t d;      // scalar: the part that is written; SIMD: a bit for each part that is
  uint8_t extra;  // the relation of vset; of vmad the signs, and above them how far it shifts
};
static_assert(sizeof(Form) == sizeof(int64_t), "it stands in `imm`");

Form form_of(const Instruction& i) {
  Form form;
  std::memcpy(&form, &i.imm, sizeof form);
  return form;
}

// A scalar part by its code: 0 the word, 1 to 4 its bytes, 5 and 6 its halves.
uint32_t bits_of_part(uint32_t part) { return part == 0 ? 32 : part < 5 ? 8 : 16; }
uint32_t begin_of_part(uint32_t part) { return part == 0 ? 0 : part < 5 ? 8 * (part - 1) : 16 * (part - 5); }

int64_t extended(uint32_t word, uint32_t from, uint32_t bits, bool is_signed) {
  uint32_t top = word << (32 - from - bits);
  return is_signed ? int64_t(int32_t(top) >> (32 - bits)) : int64_t(top >> (32 - bits));
}

using Wide = __int128;  // a word that is shifted by 32 needs more than 64 bits with a sign

Wide clamped(Wide x, uint32_t bits, bool is_signed) {
  const Wide low = is_signed ? -(1ll << (bits - 1)) : 0, high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(x, low, high);
}

bool holds(uint8_t relation, int64_t a, int64_t b) {
  switch (relation) {
    case kEq: return a == b;
    case kNe: return a != b;
    case kLt: return a < b;
    case kLe: return a <= b;
    case kGt: return a > b;
    default: return a >= b;
  }
}

Wide shifted(Wide a, int64_t b, const Form& form) {
  const uint64_t by = form.flags & kWraps ? uint64_t(b) & 31 : std::min<uint64_t>(uint64_t(b), 32);
  return form.op == kShl ? a * (Wide(1) << by) : a >> by;
}

Wide made_of(int64_t a, int64_t b, const Form& form) {
  switch (form.op) {
    case kAdd: return a + b;
    case kSub: return a - b;
    case kAbsDiff: return a < b ? b - a : a - b;
    case kMin: return std::min(a, b);
    case kMax: return std::max(a, b);
    case kAverage: return (a + b + (a + b >= 0)) >> 1;
    case kSet: return holds(form.extra, a, b);
    default: return shifted(a, b, form);
  }
}

uint32_t second(uint8_t what, uint32_t made, uint32_t c, bool is_signed) {
  if (what == kSum) return made + c;
  const bool less = is_signed ? int32_t(made) < int32_t(c) : made < c;
  return what == kNone || less == (what == kLeast) ? made : c;
}

// mode: the second operation; count 2: the result goes into a part of c.
void scalar(WarpContext& warp, const Instruction& i) {
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  const bool is_signed = form.flags & kSignedD;
  const uint32_t bits = bits_of_part(form.d), from = begin_of_part(form.d);
  const uint32_t written = static_cast<uint32_t>(((1ull << bits) - 1) << from);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    Wide made = made_of(extended(a[l], begin_of_part(form.a), bits_of_part(form.a), form.flags & kSignedA),
                        extended(b[l], begin_of_part(form.b), bits_of_part(form.b), form.flags & kSignedB), form);
    if (form.flags & kSaturates) made = clamped(made, bits, is_signed);
    const uint32_t low = static_cast<uint32_t>(made);
    d[l] = i.count == 2 ? (c[l] & ~written) | (low << from & written) : second(i.variant, low, c[l], is_signed);
  });
}

// kParts of a word; mode: are they summed up?
template <int kParts> void simd(WarpContext& warp, const Instruction& i) {
  constexpr uint32_t bits = 32 / kParts;
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    auto part = [&](uint32_t chosen, bool is_signed) {
      return extended(chosen < kParts ? a[l] : b[l], chosen % kParts * bits, bits, is_signed);
    };
    uint32_t sum = c[l], merged = c[l];
    for (int k = 0; k < kParts; k++) {
      if (!(form.d >> k & 1)) continue;
      Wide made = made_of(part(form.a >> (4 * k) & 15, form.flags & kSignedA),
                          part(form.b >> (4 * k) & 15, form.flags & kSignedB), form);
      if (form.flags & kSaturates) made = clamped(made, bits, form.flags & kSignedD);
      const uint32_t mask = ((1u << bits) - 1) << (k * bits);
      sum += static_cast<uint32_t>(made);
      merged = (merged & ~mask) | (static_cast<uint32_t>(made) << (k * bits) & mask);
    }
    d[l] = i.variant == kSum ? sum : merged;
  });
}

// In 128 bits, then shifted and held.
void vmad(WarpContext& warp, const Instruction& i) {
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  const uint8_t how = form.extra & 7, shift = form.extra >> 3;
  const bool is_signed = (form.flags & (kSignedA | kSignedB)) || (how & (kNegativeProduct | kNegativeAddend));
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    Wide made = extended(a[l], begin_of_part(form.a), bits_of_part(form.a), form.flags & kSignedA);
    made *= extended(b[l], begin_of_part(form.b), bits_of_part(form.b), form.flags & kSignedB);
    if (how & kNegativeProduct) made = -made;
    const Wide addend = extended(c[l], 0, 32, is_signed);
    made += how & kNegativeAddend ? -addend : addend;
    made = (made + (how & kPlusOne ? 1 : 0)) >> shift;
    d[l] = static_cast<uint32_t>(form.flags & kSaturates ? clamped(made, 32, is_signed) : made);
  });
}

// Takes the selector off an operand's name: `%r1.b2` leaves %r1; empty: there is none.
std::string_view take_selector(Operand& o) {
  const size_t dot = o.text.rfind('.');
  if (o.kind == Operand::Literal || dot == o.text.npos || dot == 0) return {};
  std::string_view word = o.text.substr(dot + 1);
  if (word.size() < 2 || (word[0] != 'b' && word[0] != 'h') || o.kind == Operand::Register) return {};
  o.text = o.text.substr(0, dot), o.kind = Operand::Register;
  return word;
}

bool scalar_part(Operand& o, uint16_t& part) {
  std::string_view word = take_selector(o);
  part = 0;
  if (word.empty()) return true;
  const int number = word[1] - '0', most = word[0] == 'b' ? 4 : 2;
  part = static_cast<uint16_t>((word[0] == 'b' ? 1 : 5) + number);
  return word.size() == 2 && number >= 0 && number < most;
}

// The highest part comes first; `first` is the default's lowest.
bool simd_parts(Operand& o, int parts, int first, uint16_t& chosen) {
  std::string_view word = take_selector(o);
  chosen = 0;
  if (!word.empty() && (word[0] != (parts == 4 ? 'b' : 'h') || word.size() != size_t(parts) + 1)) return false;
  for (int k = 0; k < parts; k++) {
    const int number = word.empty() ? first + k : word[static_cast<size_t>(parts - k)] - '0';
    if (number < 0 || number >= 2 * parts) return false;
    chosen = static_cast<uint16_t>(chosen | number << (4 * k));
  }
  return true;
}

// Which parts are written: `.b20`, each once and the highest first.
bool simd_mask(Operand& o, int parts, uint8_t& mask) {
  std::string_view word = take_selector(o);
  mask = static_cast<uint8_t>((1 << parts) - 1);
  if (word.empty()) return true;
  if (word[0] != (parts == 4 ? 'b' : 'h')) return false;
  mask = 0;
  int last = parts;
  for (char digit : word.substr(1)) {
    const int number = digit - '0';
    if (number < 0 || number >= last) return false;
    mask = static_cast<uint8_t>(mask | 1 << number), last = number;
  }
  return true;
}

struct Name {
  std::string_view text;
  Op op;
};
constexpr Name kNames[] = {{"vadd", kAdd},      {"vsub", kSub}, {"vabsdiff", kAbsDiff}, {"vmin", kMin}, {"vmax", kMax},
                           {"vavrg", kAverage}, {"vshl", kShl}, {"vshr", kShr},         {"vset", kSet}, {"vmad", kMad}};
constexpr std::string_view kRelations[] = {"eq", "ne", "lt", "le", "gt", "ge"};

bool is_word(std::string_view type) { return type == "u32" || type == "s32"; }

// The types lead; vset has no result's.
bool read_types(const Statement& s, Form& form, size_t& behind) {
  const size_t types = form.op == kSet ? 2 : 3;
  if (s.qualifiers.size() < types) return false;
  for (size_t k = 0; k < types; k++)
    if (!is_word(s.qualifiers[k])) return false;
  form.flags = (s.qualifiers[types - 2] == "s32" ? kSignedA : 0) | (s.qualifiers[types - 1] == "s32" ? kSignedB : 0);
  if (types == 3 && s.qualifiers[0] == "s32") form.flags |= kSignedD;
  behind = types;
  return !(form.op == kShl || form.op == kShr) || s.qualifiers[2] == "u32";
}

// What stands behind the types, each word in its turn: saturation, mode or relation, second operation.
bool read_words(const Statement& s, size_t at, bool simd, Form& form, uint8_t& second) {
  auto here = [&](std::string_view group) { return at < s.qualifiers.size() && is_in_group(group, s.qualifiers[at]); };
  if (form.op != kSet && here("sat")) form.flags |= kSaturates, at++;
  if (form.op == kShl || form.op == kShr) {
    if (!here("clamp|wrap")) return false;
    if (s.qualifiers[at++] == "wrap") form.flags |= kWraps;
  } else if (form.op == kSet) {
    if (!here("eq|ne|lt|le|gt|ge")) return false;
    const std::string_view* found = std::find(std::begin(kRelations), std::end(kRelations), s.qualifiers[at++]);
    form.extra = static_cast<uint8_t>(found - std::begin(kRelations));
  }
  if (here(simd ? "add" : "add|min|max")) {
    const std::string_view word = s.qualifiers[at++];
    second = word == "add" ? kSum : word == "min" ? kLeast : kGreatest;
  }
  return at == s.qualifiers.size() && !(simd && second == kSum && form.flags & kSaturates);
}

bool decode_mad(Decoder& d, const Statement& s, Form form, size_t at, Instruction& i) {
  auto take = [&](std::string_view group) {
    const bool found = at < s.qualifiers.size() && is_in_group(group, s.qualifiers[at]);
    at += found;
    return found;
  };
  const bool plus = take("po");
  if (take("sat")) form.flags |= kSaturates;
  const uint8_t shift = take("shr7") ? 7 : take("shr15") ? 15 : 0;
  if (at != s.qualifiers.size() || s.operands.size() != 4) return false;
  Operand a = s.operands[1], b = s.operands[2], c = s.operands[3];
  const bool product = a.negative != b.negative, addend = c.negative;
  if ((product && addend) || (plus && (a.negative || b.negative || addend))) return false;
  a.negative = b.negative = c.negative = false;
  if (!scalar_part(a, form.a) || !scalar_part(b, form.b)) return false;
  form.extra = static_cast<uint8_t>((product ? kNegativeProduct : 0) | (addend ? kNegativeAddend : 0) | (plus ? kPlusOne : 0) |
                                    shift << 3);
  std::memcpy(&i.imm, &form, sizeof form);
  i.execute = vmad;
  i.d = d.result(s.operands[0], "u32");
  i.a = d.exact_operand(a, "u32"), i.b = d.exact_operand(b, "u32"), i.c = d.exact_operand(c, "u32");
  return d.emit(i), true;
}

bool decode_scalar(Decoder& d, const Statement& s, Form form, Instruction& i) {
  Operand result = s.operands[0], a = s.operands[1], b = s.operands[2];
  uint16_t into = 0;
  if (!scalar_part(result, into) || !scalar_part(a, form.a) || !scalar_part(b, form.b)) return false;
  form.d = static_cast<uint8_t>(into);
  const bool third = into || i.variant != kNone;
  if ((into && i.variant != kNone) || s.operands.size() != (third ? 4u : 3u)) return false;
  std::memcpy(&i.imm, &form, sizeof form);
  i.count = into ? 2 : 1;
  i.execute = scalar;
  i.d = d.result(result, "u32");
  i.a = d.exact_operand(a, "u32"), i.b = d.exact_operand(b, "u32");
  i.c = third ? d.exact_operand(s.operands[3], "u32") : i.a;
  return d.emit(i), true;
}

bool decode_simd(Decoder& d, const Statement& s, Form form, int parts, Instruction& i) {
  Operand result = s.operands[0], a = s.operands[1], b = s.operands[2];
  if (s.operands.size() != 4 || !simd_mask(result, parts, form.d)) return false;
  if (!simd_parts(a, parts, 0, form.a) || !simd_parts(b, parts, parts, form.b)) return false;
  std::memcpy(&i.imm, &form, sizeof form);
  i.execute = parts == 4 ? simd<4> : simd<2>;
  i.d = d.result(result, "u32");
  i.a = d.exact_operand(a, "u32"), i.b = d.exact_operand(b, "u32"), i.c = d.exact_operand(s.operands[3], "u32");
  return d.emit(i), true;
}

}  // namespace

bool decode_video(Decoder& d, const Statement& s, Instruction& i) {
  const char last = s.op.back();
  const int parts = last == '2' || last == '4' ? last - '0' : 1;
  const std::string_view stem = s.op.substr(0, s.op.size() - (parts > 1));
  const Name* name = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& one) { return one.text == stem; });
  if (name == std::end(kNames) || s.operands.size() < 3) return false;
  Form form = {};
  form.op = name->op;
  const bool alone = form.op == kShl || form.op == kShr || form.op == kMad;  // there are no SIMD forms
  size_t at = 0;
  if ((parts > 1 ? alone : form.op == kAverage) || !read_types(s, form, at)) return false;
  if (form.op == kMad) return decode_mad(d, s, form, at, i);
  if (!read_words(s, at, parts > 1, form, i.variant)) return false;
  return parts > 1 ? decode_simd(d, s, form, parts, i) : decode_scalar(d, s, form, i);
}

}  // namespace vgpu
