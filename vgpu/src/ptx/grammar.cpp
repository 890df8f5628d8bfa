// The permitted forms of each PTX instruction: its qualifiers, types and number of operands.
#include "grammar.h"

#include <algorithm>

namespace vgpu {
namespace {

// Each line is `ops; modifiers; types; number of operands`.  A modifier is one of `a/b/c`, which is optional with a `?`; modifiers
// may be in any order, before the types.  `m` behind the number: one more operand with and, or and xor; `h`: one more with
// L2::cache_hint.
constexpr const char* kForms[] = {
    // Integer arithmetic
    "add sub; ; u16/s16; 3",
    "add; ; u16x2/s16x2; 3",
    "add sub; cc?; WORD; 3",
    "add sub; sat; s32; 3",
    "addc subc; cc?; WORD; 3",
    "mul; hi/lo/wide; u16/u32/s16/s32; 3",
    "mul; hi/lo; u64/s64; 3",
    "mad; hi/lo/wide; u16/u32/s16/s32; 4",
    "mad; hi/lo; u64/s64; 4",
    "mad; hi/lo cc; WORD; 4",
    "mad; hi sat; s32; 4",
    "madc; hi/lo cc?; WORD; 4",
    "mul24; hi/lo; u32/s32; 3",
    "mad24; hi/lo; u32/s32; 4",
    "mad24; hi sat; s32; 4",
    "sad; ; INTEGER; 4",
    "div rem; ; INTEGER; 3",
    "neg abs; ; s16/s32/s64; 2",
    "min max; ; u16/u32/u64/s16/s64/u16x2; 3",
    "min max; relu?; s32/s16x2; 3",
    "popc clz brev; ; b32/b64; 2",
    "bfind; shiftamt?; WORD; 2",
    "bfe; ; WORD; 4",
    "bfi; ; b32/b64; 5",
    "szext; clamp/wrap; u32/s32; 3",
    "bmsk; clamp/wrap; b32; 3",
    "fns; ; b32; 4",
    "dp4a; ; u32/s32 u32/s32; 4",
    "dp2a; lo/hi; u32/s32 u32/s32; 4",
    // Logic, shifts and permutations
    "and or xor; ; BITS/pred; 3",
    "not; ; BITS/pred; 2",
    "cnot; ; BITS; 2",
    "lop3; ; b32; 5",
    "lop3; and/or; b32; 6",
    "shl; ; BITS; 3",
    "shr; ; BITS/INTEGER; 3",
    "shf; l/r clamp/wrap; b32; 4",
    "prmt; b32 f4e/b4e/rc8/ecl/ecr/rc16?; ; 4",
    // Floating point
    "add sub mul; ROUND? ftz? sat?; f32; 3",
    "add sub mul; ROUND?; f64; 3",
    "add sub mul; rn? ftz? sat?; f16/f16x2; 3",
    "add sub mul; rn?; bf16/bf16x2; 3",
    "fma mad; ROUND ftz? sat?; f32; 4",
    "fma mad; ROUND; f64; 4",
    "fma; rn ftz? sat?; f16/f16x2; 4",
    "fma; rn ftz? relu; f16/f16x2; 4",
    "fma; ROUND relu?; bf16/bf16x2; 4",
    "fma; rn oob relu?; HALF; 4",
    "neg abs; ; bf16/bf16x2/f64; 2",
    "neg abs; ftz?; f16/f16x2/f32; 2",
    "min max; ; f64; 3",
    "min max; ftz? NaN?; f16/f16x2/f32; 3",
    "min max; ftz? NaN? xorsign abs; f16/f16x2/f32; 3",
    "min max; NaN?; bf16/bf16x2; 3",
    "min max; NaN? xorsign abs; bf16/bf16x2; 3",
    "div; approx/full/ROUND ftz?; f32; 3",
    "div; ROUND; f64; 3",
    "rcp sqrt; approx/ROUND ftz?; f32; 2",
    "rcp sqrt; ROUND; f64; 2",
    "rcp; approx ftz; f64; 2",
    "rsqrt; approx ftz?; f32/f64; 2",
    "ex2 lg2 sin cos; approx ftz?; f32; 2",
    "ex2; approx; f16/f16x2; 2",
    "ex2; approx ftz; bf16/bf16x2; 2",
    "tanh; approx; f32/HALF; 2",
    "copysign; ; f32/f64; 3",
    "testp; finite/infinite/number/notanumber/normal/subnormal; f32/f64; 2",
    // Comparison and selection
    "setp; eq/ne MORE?; BITS; 3m",
    "setp; SIGNED MORE?; s16/s32/s64; 3m",
    "setp; SIGNED/lo/ls/hi/hs MORE?; u16/u32/u64; 3m",
    "setp; REAL MORE? ftz?; f16/f16x2/f32; 3m",
    "setp; REAL MORE?; bf16/bf16x2/f64; 3m",
    "set; eq/ne MORE?; SET BITS; 3m",
    "set; SIGNED MORE?; SET s16/s32/s64; 3m",
    "set; SIGNED/lo/ls/hi/hs MORE?; SET u16/u32/u64; 3m",
    "set; REAL MORE? ftz?; u32/s32/f16/f32 f32; 3m",
    "set; REAL MORE? ftz?; u16/s16/u32/s32/f16 f16; 3m",
    "set; REAL MORE? ftz?; f16x2 f16x2; 3m",
    "set; REAL MORE?; SET f64; 3m",
    "set; REAL MORE?; bf16 f16/f32; 3m",
    "set; REAL MORE?; u16/s16/u32/s32/bf16 bf16; 3m",
    "set; REAL MORE?; bf16x2 bf16x2; 3m",
    "selp; ; BITS/INTEGER/f32/f64; 4",
    "slct; ; BITS/INTEGER/f32/f64 s32; 4",
    "slct; ftz?; BITS/INTEGER/f32/f64 f32; 4",
    // Conversions
    "cvt; sat?; u8/INTEGER/s8 u8/INTEGER/s8; 2",
    "cvt; WHOLE sat?; u8/INTEGER/s8 f16/f64; 2",
    "cvt; WHOLE ftz? sat?; u8/INTEGER/s8 f32; 2",
    "cvt; WHOLE; INTEGER bf16; 2",
    "cvt; ROUND sat?; f16/f64 u8/INTEGER/s8; 2",
    "cvt; ROUND ftz? sat?; f32 u8/INTEGER/s8; 2",
    "cvt; ROUND; bf16 INTEGER; 2",
    "cvt; sat?; f64 f16; 2",
    "cvt; WHOLE? sat?; f16 f16; 2",
    "cvt; WHOLE? sat?; f64 f64; 2",
    "cvt; WHOLE? ftz? sat?; f32 f32; 2",
    "cvt; WHOLE?; bf16 bf16; 2",
    "cvt; ROUND?; f16 bf16; 2",
    "cvt; ROUND?; bf16 f16; 2",
    "cvt; ROUND?; f64 bf16; 2",
    "cvt; ftz? sat?; f32 f16; 2",
    "cvt; ftz? sat?; f64 f32; 2",
    "cvt; ROUND? ftz?; f32 bf16; 2",
    "cvt; ROUND sat?; f16 f64; 2",
    "cvt; ROUND; bf16 f64; 2",
    "cvt; ROUND ftz? sat?; f32 f64; 2",
    "cvt; ROUND ftz? sat?; f16 f32; 2",
    "cvt; ROUND ftz?; bf16 f32; 2",
    "cvt; rn/rz satfinite? relu?; f16/bf16 f32; 2",
    "cvt; rn/rz satfinite? relu?; f16x2/bf16x2 f32; 3",
    "cvt; rn/rz relu?; tf32 f32; 2",
    "cvt; rna satfinite?; tf32 f32; 2",
    "cvt; rn satfinite relu?; e4m3x2/e5m2x2 f32; 3",
    "cvt; rn satfinite relu?; e4m3x2/e5m2x2 f16x2; 2",
    "cvt; rn relu?; f16x2 e4m3x2/e5m2x2; 2",
    "cvt; pack sat; u16/s16 s32; 3",
    "cvt; pack sat; u2/s2/u4/s4/u8/s8 s32 b32; 4",
    // Data movement
    "mov; ; BITS/INTEGER/f32/f64/pred/b128; 2",
    "mov; v2/v4; BITS/INTEGER/f32/f64; 2",
    "cvta; to? global/shared/shared::cta/shared::cluster/local/const/param/param::entry; u64; 2",
    "isspacep; global/shared/shared::cta/shared::cluster/local/const/param/param::entry; ; 2",
    "ld; weak? global? ca/cg/cs/lu/cv? LOAD_HINT VECTOR; TYPE; 2h",
    "ld; weak? INNER/const/param::entry ca/cg/cs/lu/cv? VECTOR; TYPE; 2",
    "ld; weak? global ca/cg/cs? nc LOAD_HINT VECTOR; TYPE; 2h",
    "ld; volatile NEAR? unified? v2/v4?; TYPE; 2",
    "ld; relaxed/acquire SCOPE global? LOAD_HINT VECTOR; TYPE; 2h",
    "ld; relaxed/acquire SCOPE shared/shared::cta VECTOR; TYPE; 2",
    "ld st; mmio relaxed sys global?; TYPE; 2",
    "st; weak? global? wb/cg/cs/wt? STORE_HINT VECTOR; TYPE; 2h",
    "st; weak? INNER wb/cg/cs/wt? VECTOR; TYPE; 2",
    "st; volatile NEAR? v2/v4?; TYPE; 2",
    "st; relaxed/release SCOPE global? STORE_HINT VECTOR; TYPE; 2h",
    "st; relaxed/release SCOPE shared/shared::cta VECTOR; TYPE; 2",
    "ldu; global? v2/v4?; TYPE; 2",
    "prefetch; global/local? L1/L2; ; 1",
    "prefetch; global L2::evict_last/L2::evict_normal; ; 1",
    "prefetchu; L1; ; 1",
    "discard; global? L2; ; 2",
    "applypriority; global? L2::evict_normal; ; 2",
    "cp; async ca shared/shared::cta global L2::cache_hint? L2::64B/L2::128B/L2::256B?; ; 3h",
    "cp; async ca shared/shared::cta global L2::cache_hint? L2::64B/L2::128B/L2::256B?; ; 4h",
    "cp; async cg shared/shared::cta global L2::cache_hint? L2::64B/L2::128B/L2::256B?; ; 3h",
    "cp; async cg shared/shared::cta global L2::cache_hint? L2::64B/L2::128B/L2::256B?; ; 4h",
    "cp; async commit_group/wait_all; ; 0",
    "cp; async wait_group; ; 1",
    // Textures and surfaces, by objects
    "tex; GEOMETRY v4; u32/s32/f32 s32/f32; 2",
    "tex; level GEOMETRY v4; u32/s32/f32 f32; 3",
    "tex; grad GEOMETRY v4; u32/s32/f32 f32; 4",
    "tld4; r/g/b/a 2d/a2d v4; u32/s32/f32 f32; 2",
    "txq; width/height/depth/array_size/num_mipmap_levels/normalized_coords; b32; 2",
    "suld; b GEOMETRY ca/cg/cs/cv? v2/v4?; b8/b16/b32/b64 trap/clamp/zero; 2",
    "sust; b GEOMETRY wb/cg/cs/wt? v2/v4?; b8/b16/b32/b64 trap/clamp/zero; 2",
    "sured; b add GEOMETRY; u32/s32/u64 trap/clamp/zero; 2",
    "sured; b min/max GEOMETRY; u32/s32/u64/s64 trap/clamp/zero; 2",
    "sured; b and/or GEOMETRY; b32 trap/clamp/zero; 2",
    "suq; width/height/depth/array_size; b32; 2",
    // Among threads
    "shfl; sync up/down/bfly/idx; b32; 5",
    "shfl; up/down/bfly/idx; b32; 4",
    "vote; sync all/any/uni; pred; 3",
    "vote; all/any/uni; pred; 2",
    "vote; sync ballot; b32; 3",
    "vote; ballot; b32; 2",
    "match; any/all sync; b32/b64; 3",
    "redux; sync add/min/max; u32/s32; 3",
    "redux; sync and/or/xor; b32; 3",
    "activemask; ; b32; 1",
    "mma; sync aligned m16n8k4/m16n8k8 row col; f32 tf32 tf32 f32; 4",
    "mma; sync aligned m16n8k8/m16n8k16 row col; f32 bf16 bf16 f32; 4",
    "mma; sync aligned m16n8k8/m16n8k16 row col; f32 f16 f16 f32; 4",
    "mma; sync aligned m16n8k8/m16n8k16 row col; f16 f16 f16 f16; 4",
    "mma; sync aligned m16n8k16/m16n8k32 row col satfinite?; s32 s8/u8 s8/u8 s32; 4",
    "wmma; load a/b sync aligned row/col LARGE NEAR?; f16/bf16/s8/u8; 2",
    "wmma; load a/b sync aligned row/col LARGE NEAR?; f16/bf16/s8/u8; 3",
    "wmma; load a/b sync aligned row/col m16n16k8 NEAR?; tf32; 2",
    "wmma; load a/b sync aligned row/col m16n16k8 NEAR?; tf32; 3",
    "wmma; load c sync aligned row/col LARGE NEAR?; f16/f32/s32; 2",
    "wmma; load c sync aligned row/col LARGE NEAR?; f16/f32/s32; 3",
    "wmma; load c sync aligned row/col m16n16k8 NEAR?; f32; 2",
    "wmma; load c sync aligned row/col m16n16k8 NEAR?; f32; 3",
    "wmma; store d sync aligned row/col LARGE NEAR?; f16/f32/s32; 2",
    "wmma; store d sync aligned row/col LARGE NEAR?; f16/f32/s32; 3",
    "wmma; store d sync aligned row/col m16n16k8 NEAR?; f32; 2",
    "wmma; store d sync aligned row/col m16n16k8 NEAR?; f32; 3",
    "wmma; mma sync aligned row/col row/col LARGE; f16 f16; 4",
    "wmma; mma sync aligned row/col row/col LARGE; f32 f32; 4",
    "wmma; mma sync aligned row/col row/col LARGE; f32 bf16 bf16 f32; 4",
    "wmma; mma sync aligned row/col row/col m16n16k8; f32 tf32 tf32 f32; 4",
    "wmma; mma sync aligned row/col row/col LARGE satfinite?; s32 s8 s8 s32; 4",
    "wmma; mma sync aligned row/col row/col LARGE satfinite?; s32 u8 u8 s32; 4",
    "createpolicy; fractional L2::evict_last/L2::evict_first/L2::evict_normal; b64; 1",
    "createpolicy; fractional L2::evict_last/L2::evict_first/L2::evict_normal; b64; 2",
    "movmatrix; sync aligned m8n8 trans; b16; 2",
    "ldmatrix; sync aligned m8n8 x1/x2/x4 trans? shared/shared::cta?; b16; 2",
    "atom; ORDER add u32/s32/u64/f32/f64; ; 3h",
    "atom; ORDER add noftz HALF; ; 3h",
    "atom; ORDER min/max u32/s32/u64/s64; ; 3h",
    "atom; ORDER and/or/xor b32/b64; ; 3h",
    "atom; ORDER exch b32/b64/b128; ; 3h",
    "atom; ORDER inc/dec u32; ; 3h",
    "atom; ORDER cas b16/b32/b64/b128; ; 4h",
    "atom; ORDER add v2/v4 f32; ; 3h",
    "atom; ORDER add/min/max noftz v2/v4/v8 HALF; ; 3h",
    "red; REDUCTION add u32/s32/u64/f32/f64; ; 2h",
    "red; REDUCTION add noftz HALF; ; 2h",
    "red; REDUCTION min/max u32/s32/u64/s64; ; 2h",
    "red; REDUCTION and/or/xor b32/b64; ; 2h",
    "red; REDUCTION inc/dec u32; ; 2h",
    "red; REDUCTION add v2/v4 f32; ; 2h",
    "red; REDUCTION add/min/max noftz v2/v4/v8 HALF; ; 2h",
    "bar; cta? sync; ; 1",
    "bar; cta? sync/arrive; ; 2",
    "bar; warp sync; ; 1",
    "bar; cta? red popc; u32; 3",
    "bar; cta? red popc; u32; 4",
    "bar; cta? red and/or; pred; 3",
    "bar; cta? red and/or; pred; 4",
    "barrier; cta? sync aligned?; ; 1",
    "barrier; cta? sync/arrive aligned?; ; 2",
    "barrier; cta? red popc aligned?; u32; 3",
    "barrier; cta? red popc aligned?; u32; 4",
    "barrier; cta? red and/or aligned?; pred; 3",
    "barrier; cta? red and/or aligned?; pred; 4",
    "barrier; cluster arrive release/relaxed? aligned?; ; 0",
    "barrier; cluster wait acquire? aligned?; ; 0",
    "membar; cta/gl/sys; ; 0",
    "fence; sc/acq_rel/acquire/release? SCOPE; ; 0",
    "fence; mbarrier_init release cluster; ; 0",
    "fence; proxy alias/async/async::generic; ; 0",
    "fence; proxy async global/shared::cta/shared::cluster; ; 0",
    "fence; proxy tensormap::generic release SCOPE; ; 0",
    "nanosleep; ; u32; 1",
    // Control
    "bra; uni?; ; 1",
    "ret; uni?; ; 0",
    "exit trap brkpt; ; ; 0",
};

constexpr struct {
  const char *name, *is;
} kGroups[] = {
    {"INTEGER", "u16/u32/u64/s16/s32/s64"},
    {"WORD", "u32/u64/s32/s64"},
    {"BITS", "b16/b32/b64"},
    {"HALF", "f16/f16x2/bf16/bf16x2"},
    {"TYPE", "b8/b16/b32/b64/b128/u8/u16/u32/u64/s8/s16/s32/s64/f32/f64"},
    {"GEOMETRY", "1d/2d/3d/a1d/a2d"},
    {"ROUND", "rn/rz/rm/rp"},
    {"WHOLE", "rni/rzi/rmi/rpi"},
    {"SIGNED", "eq/ne/lt/le/gt/ge"},
    {"REAL", "eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan"},
    {"MORE", "and/or/xor"},
    {"SET", "u32/s32/f16/bf16/f32"},
    {"LARGE", "m16n16k16/m8n32k16/m32n8k16"},
    {"NEAR", "global/shared/shared::cta"},
    {"SCOPE", "cta/cluster/gpu/sys"},
    {"REDUCTION", "relaxed/release? cta/cluster/gpu/sys? global/shared/shared::cta? L2::cache_hint?"},
    {"ORDER", "relaxed/acquire/release/acq_rel? cta/cluster/gpu/sys? global/shared/shared::cta? L2::cache_hint?"},
    {"LOAD_HINT", "STORE_HINT L2::64B/L2::128B/L2::256B?"},
    {"STORE_HINT", "L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate? L2::cache_hint?"},
    {"VECTOR", "unified? v2/v4?"},
    {"INNER", "shared/shared::cta/local/param/param::func"},
};

using Words = std::vector<std::string>;

Words split(const std::string& text, char separator) {
  Words parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != text.npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return parts;
}

struct Group {
  Words words;
  bool optional;
};

struct Form {
  std::vector<Group> modifiers, types;
  size_t operands;
  bool has_extra_with_logic, has_cache_hint;
};

std::string expand_groups(std::string text) {
  for (const auto& group : kGroups)
    for (size_t position; (position = text.find(group.name)) != text.npos;)
      text.replace(position, std::string(group.name).size(), group.is);
  return text;
}

std::vector<Group> parse_groups(const std::string& text) {
  std::vector<Group> result;
  for (std::string group_text : split(text, ' ')) {
    bool optional = group_text.back() == '?';
    if (optional) group_text.pop_back();
    result.push_back({split(group_text, '/'), optional});
  }
  return result;
}

std::map<std::string, std::vector<Form>, std::less<>> read_forms() {
  std::map<std::string, std::vector<Form>, std::less<>> forms;
  for (const char* line : kForms) {
    Words parts = split(expand_groups(line), ';');
    const std::string& count = parts[3];
    Form form{parse_groups(parts[1]), parse_groups(parts[2]), size_t(count[1] - '0'), count.back() == 'm', count.back() == 'h'};
    for (const std::string& op : split(parts[0], ' ')) forms[op].push_back(form);
  }
  return forms;
}

bool contains(const Group& group, std::string_view word) {
  return std::find(group.words.begin(), group.words.end(), word) != group.words.end();
}

// Returns whether each modifier is in a different group, and each required group has a modifier.
bool fits_modifiers(const Form& form, const Statement& s, size_t count) {
  std::vector<bool> used(form.modifiers.size());
  for (size_t k = 0; k < count; k++) {
    size_t index = 0;
    while (index < used.size() && (used[index] || !contains(form.modifiers[index], s.qualifiers[k]))) index++;
    if (index == used.size()) return false;
    used[index] = true;
  }
  for (size_t index = 0; index < used.size(); index++)
    if (!used[index] && !form.modifiers[index].optional) return false;
  return true;
}

bool fits(const Form& form, const Statement& s) {
  if (s.qualifiers.size() < form.types.size()) return false;
  size_t count = s.qualifiers.size() - form.types.size();
  for (size_t k = 0; k < form.types.size(); k++)
    if (!contains(form.types[k], s.qualifiers[count + k])) return false;
  size_t operands = form.operands + (form.has_extra_with_logic && !s.qualifier_of("and|or|xor").empty()) +
                    (form.has_cache_hint && s.has("L2::cache_hint"));
  return s.operands.size() == operands && fits_modifiers(form, s, count);
}

}  // namespace

bool has_form(const Statement& s) {
  static const auto forms = read_forms();
  auto entry = forms.find(s.op);
  if (entry == forms.end()) return true;
  return std::any_of(entry->second.begin(), entry->second.end(), [&s](const Form& form) { return fits(form, s); });
}

}  // namespace vgpu
