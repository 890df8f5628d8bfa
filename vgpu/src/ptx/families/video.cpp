// Video instructions: PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions".  Operands are words, or a byte or
// a half of one; of the latter two or four at once, picked from both operands.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum Op : uint8_t { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kShl, kShr, kSet, kMad };
enum Second : uint8_t { kNone, kSum, kSecondMin, kSecondMax };
enum Relation : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr uint8_t kSignedA = 1, kSignedB = 2, kSignedD = 4, kSaturates = 8, kWraps = 16;
constexpr uint8_t kNegativeProduct = 1, kNegativeAddend = 2, kPlusOne = 4;

// The form of an instruction, which is stored in its `imm`.
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

int64_t extract_part(uint32_t word, uint32_t begin, uint32_t bits, bool is_signed) {
  uint32_t top = word << (32 - begin - bits);
  return is_signed ? int64_t(int32_t(top) >> (32 - bits)) : int64_t(top >> (32 - bits));
}

using Wide = __int128;  // a word that is shifted by 32 needs more than 64 bits with a sign

Wide clamp_to(Wide x, uint32_t bits, bool is_signed) {
  const Wide low = is_signed ? -(1ll << (bits - 1)) : 0, high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(x, low, high);
}

bool compare(uint8_t relation, int64_t a, int64_t b) {
  switch (relation) {
    case kEq: return a == b;
    case kNe: return a != b;
    case kLt: return a < b;
    case kLe: return a <= b;
    case kGt: return a > b;
    default: return a >= b;
  }
}

Wide shift_value(Wide a, int64_t b, const Form& form) {
  const uint64_t distance = form.flags & kWraps ? uint64_t(b) & 31 : std::min<uint64_t>(uint64_t(b), 32);
  return form.op == kShl ? a * (Wide(1) << distance) : a >> distance;
}

Wide apply_operation(int64_t a, int64_t b, const Form& form) {
  switch (form.op) {
    case kAdd: return a + b;
    case kSub: return a - b;
    case kAbsDiff: return a < b ? b - a : a - b;
    case kMin: return std::min(a, b);
    case kMax: return std::max(a, b);
    case kAverage: return (a + b + (a + b >= 0)) >> 1;
    case kSet: return compare(form.extra, a, b);
    default: return shift_value(a, b, form);
  }
}

uint32_t apply_second(uint8_t operation, uint32_t value, uint32_t c, bool is_signed) {
  if (operation == kSum) return value + c;
  const bool less = is_signed ? int32_t(value) < int32_t(c) : value < c;
  return operation == kNone || less == (operation == kSecondMin) ? value : c;
}

// variant: the second operation; count 2: the result replaces a part of c.
void scalar(WarpContext& warp, const Instruction& i) {
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  const bool is_signed = form.flags & kSignedD;
  const uint32_t bits = bits_of_part(form.d), begin = begin_of_part(form.d);
  const uint32_t mask = static_cast<uint32_t>(((1ull << bits) - 1) << begin);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    Wide result = apply_operation(extract_part(a[l], begin_of_part(form.a), bits_of_part(form.a), form.flags & kSignedA),
                                  extract_part(b[l], begin_of_part(form.b), bits_of_part(form.b), form.flags & kSignedB), form);
    if (form.flags & kSaturates) result = clamp_to(result, bits, is_signed);
    const uint32_t low = static_cast<uint32_t>(result);
    d[l] = i.count == 2 ? (c[l] & ~mask) | (low << begin & mask) : apply_second(i.variant, low, c[l], is_signed);
  });
}

// Operates on kParts parts of a word.  variant: whether the results are summed.
template <int kParts> void simd(WarpContext& warp, const Instruction& i) {
  constexpr uint32_t bits = 32 / kParts;
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    auto part = [&](uint32_t index, bool is_signed) {
      return extract_part(index < kParts ? a[l] : b[l], index % kParts * bits, bits, is_signed);
    };
    uint32_t sum = c[l], merged = c[l];
    for (int k = 0; k < kParts; k++) {
      if (!(form.d >> k & 1)) continue;
      Wide result = apply_operation(part(form.a >> (4 * k) & 15, form.flags & kSignedA),
                                    part(form.b >> (4 * k) & 15, form.flags & kSignedB), form);
      if (form.flags & kSaturates) result = clamp_to(result, bits, form.flags & kSignedD);
      const uint32_t mask = ((1u << bits) - 1) << (k * bits);
      sum += static_cast<uint32_t>(result);
      merged = (merged & ~mask) | (static_cast<uint32_t>(result) << (k * bits) & mask);
    }
    d[l] = i.variant == kSum ? sum : merged;
  });
}

// Computes in 128 bits, then shifts and saturates.
void vmad(WarpContext& warp, const Instruction& i) {
  const Form form = form_of(i);
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  const uint8_t signs = form.extra & 7, shift = form.extra >> 3;
  const bool is_signed = (form.flags & (kSignedA | kSignedB)) || (signs & (kNegativeProduct | kNegativeAddend));
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    Wide result = extract_part(a[l], begin_of_part(form.a), bits_of_part(form.a), form.flags & kSignedA);
    result *= extract_part(b[l], begin_of_part(form.b), bits_of_part(form.b), form.flags & kSignedB);
    if (signs & kNegativeProduct) result = -result;
    const Wide addend = extract_part(c[l], 0, 32, is_signed);
    result += signs & kNegativeAddend ? -addend : addend;
    result = (result + (signs & kPlusOne ? 1 : 0)) >> shift;
    d[l] = static_cast<uint32_t>(form.flags & kSaturates ? clamp_to(result, 32, is_signed) : result);
  });
}

// Removes and returns the selector of an operand's name: `%r1.b2` becomes %r1; empty: none.
std::string_view remove_selector(Operand& o) {
  const size_t dot = o.text.rfind('.');
  if (o.kind == Operand::Literal || dot == o.text.npos || dot == 0) return {};
  std::string_view selector = o.text.substr(dot + 1);
  if (selector.size() < 2 || (selector[0] != 'b' && selector[0] != 'h') || o.kind == Operand::Register) return {};
  o.text = o.text.substr(0, dot), o.kind = Operand::Register;
  return selector;
}

bool scalar_part(Operand& o, uint16_t& part) {
  std::string_view selector = remove_selector(o);
  part = 0;
  if (selector.empty()) return true;
  const int number = selector[1] - '0', count = selector[0] == 'b' ? 4 : 2;
  part = static_cast<uint16_t>((selector[0] == 'b' ? 1 : 5) + number);
  return selector.size() == 2 && number >= 0 && number < count;
}

// The highest part comes first; `first` is the default's lowest.
bool simd_parts(Operand& o, int parts, int first, uint16_t& chosen) {
  std::string_view selector = remove_selector(o);
  chosen = 0;
  if (!selector.empty() && (selector[0] != (parts == 4 ? 'b' : 'h') || selector.size() != size_t(parts) + 1)) return false;
  for (int k = 0; k < parts; k++) {
    const int number = selector.empty() ? first + k : selector[static_cast<size_t>(parts - k)] - '0';
    if (number < 0 || number >= 2 * parts) return false;
    chosen = static_cast<uint16_t>(chosen | number << (4 * k));
  }
  return true;
}

// Parses the mask of written parts, such as `.b20`: each once, the highest first.
bool simd_mask(Operand& o, int parts, uint8_t& mask) {
  std::string_view selector = remove_selector(o);
  mask = static_cast<uint8_t>((1 << parts) - 1);
  if (selector.empty()) return true;
  if (selector[0] != (parts == 4 ? 'b' : 'h')) return false;
  mask = 0;
  int last = parts;
  for (char digit : selector.substr(1)) {
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

// Sorts qualifiers as PTX ISA writes them; ptxas takes them in any order, and the types among them in theirs.
Statement sort_qualifiers(Statement s) {
  const auto rank = [](std::string_view qualifier) {
    if (is_word(qualifier)) return 0;
    static constexpr std::string_view kGroups[] = {"po", "sat", "clamp|wrap|eq|ne|lt|le|gt|ge|shr7|shr15"};
    const auto* group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                     [&](std::string_view candidate) { return is_in_group(candidate, qualifier); });
    return static_cast<int>(group - std::begin(kGroups)) + 1;
  };
  std::stable_sort(s.qualifiers.begin(), s.qualifiers.end(),
                   [&](std::string_view a, std::string_view b) { return rank(a) < rank(b); });
  return s;
}

// Reads the types, which come first; vset has none for its result.
bool read_types(const Statement& s, Form& form, size_t& next) {
  const size_t types = form.op == kSet ? 2 : 3;
  if (s.qualifiers.size() < types) return false;
  for (size_t k = 0; k < types; k++)
    if (!is_word(s.qualifiers[k])) return false;
  form.flags = (s.qualifiers[types - 2] == "s32" ? kSignedA : 0) | (s.qualifiers[types - 1] == "s32" ? kSignedB : 0);
  if (types == 3 && s.qualifiers[0] == "s32") form.flags |= kSignedD;
  next = types;
  return !(form.op == kShl || form.op == kShr) || s.qualifiers[2] == "u32";
}

// Reads the qualifiers behind the types in order: saturation, mode or relation, second operation.
bool read_qualifiers(const Statement& s, size_t position, bool simd, Form& form, uint8_t& second_operation) {
  auto is_next = [&](std::string_view group) {
    return position < s.qualifiers.size() && is_in_group(group, s.qualifiers[position]);
  };
  if (form.op != kSet && is_next("sat")) form.flags |= kSaturates, position++;
  if (form.op == kShl || form.op == kShr) {
    if (!is_next("clamp|wrap")) return false;
    if (s.qualifiers[position++] == "wrap") form.flags |= kWraps;
  } else if (form.op == kSet) {
    if (!is_next("eq|ne|lt|le|gt|ge")) return false;
    const std::string_view* relation = std::find(std::begin(kRelations), std::end(kRelations), s.qualifiers[position++]);
    form.extra = static_cast<uint8_t>(relation - std::begin(kRelations));
  }
  if (is_next(simd ? "add" : "add|min|max")) {
    const std::string_view qualifier = s.qualifiers[position++];
    second_operation = qualifier == "add" ? kSum : qualifier == "min" ? kSecondMin : kSecondMax;
  }
  return position == s.qualifiers.size() && !(simd && second_operation == kSum && form.flags & kSaturates);
}

bool decode_mad(Decoder& d, const Statement& s, Form form, size_t position, Instruction& i) {
  auto consume = [&](std::string_view group) {
    const bool is_match = position < s.qualifiers.size() && is_in_group(group, s.qualifiers[position]);
    position += is_match;
    return is_match;
  };
  const bool plus = consume("po");
  if (consume("sat")) form.flags |= kSaturates;
  const uint8_t shift = consume("shr7") ? 7 : consume("shr15") ? 15 : 0;
  if (position != s.qualifiers.size() || s.operands.size() != 4) return false;
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
  i.a = d.source(a, "u32"), i.b = d.source(b, "u32"), i.c = d.source(c, "u32");
  return d.emit(i), true;
}

bool decode_scalar(Decoder& d, const Statement& s, Form form, Instruction& i) {
  Operand result = s.operands[0], a = s.operands[1], b = s.operands[2];
  uint16_t result_part = 0;
  if (!scalar_part(result, result_part) || !scalar_part(a, form.a) || !scalar_part(b, form.b)) return false;
  form.d = static_cast<uint8_t>(result_part);
  const bool has_third = result_part || i.variant != kNone;
  if ((result_part && i.variant != kNone) || s.operands.size() != (has_third ? 4u : 3u)) return false;
  std::memcpy(&i.imm, &form, sizeof form);
  i.count = result_part ? 2 : 1;
  i.execute = scalar;
  i.d = d.result(result, "u32");
  i.a = d.source(a, "u32"), i.b = d.source(b, "u32");
  i.c = has_third ? d.source(s.operands[3], "u32") : i.a;
  return d.emit(i), true;
}

bool decode_simd(Decoder& d, const Statement& s, Form form, int parts, Instruction& i) {
  Operand result = s.operands[0], a = s.operands[1], b = s.operands[2];
  const auto is_literal = [](const Operand& o) { return o.kind == Operand::Literal; };
  if (s.operands.size() != 4 || std::any_of(s.operands.begin(), s.operands.end(), is_literal)) return false;
  if (!simd_mask(result, parts, form.d)) return false;
  if (!simd_parts(a, parts, 0, form.a) || !simd_parts(b, parts, parts, form.b)) return false;
  std::memcpy(&i.imm, &form, sizeof form);
  i.execute = parts == 4 ? simd<4> : simd<2>;
  i.d = d.result(result, "u32");
  i.a = d.source(a, "u32"), i.b = d.source(b, "u32"), i.c = d.source(s.operands[3], "u32");
  return d.emit(i), true;
}

}  // namespace

bool decode_video(Decoder& d, const Statement& statement, Instruction& i) {
  const Statement s = sort_qualifiers(statement);
  const char last = s.op.back();
  const int parts = last == '2' || last == '4' ? last - '0' : 1;
  const std::string_view stem = s.op.substr(0, s.op.size() - (parts > 1));
  const Name* name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& candidate) { return candidate.text == stem; });
  if (name == std::end(kNames) || s.operands.size() < 3) return false;
  Form form = {};
  form.op = name->op;
  const bool is_scalar_only = form.op == kShl || form.op == kShr || form.op == kMad;  // without SIMD forms
  size_t position = 0;
  if ((parts > 1 ? is_scalar_only : form.op == kAverage) || !read_types(s, form, position)) return false;
  if (form.op == kMad) return decode_mad(d, s, form, position, i);
  if (!read_qualifiers(s, position, parts > 1, form, i.variant)) return false;
  return parts > 1 ? decode_simd(d, s, form, parts, i) : decode_scalar(d, s, form, i);
}

}  // namespace vgpu
