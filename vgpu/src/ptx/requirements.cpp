// Which PTX version and architecture each form of an instruction requires.
#include "requirements.h"

#include <algorithm>

namespace vgpu {
namespace {

// The PTX version and target that instructions with certain qualifiers require: 86 is PTX 8.6, 90 is sm_90, 0 is no requirement.
// words: groups separated by spaces, each of which must apply.  A group `a|b` needs one of the qualifiers; `f32.f16` are the last
// two types.  Forms that PTX 2.0 and sm_20 have are not listed.
struct Requirement {
  std::string_view ops, words;
  uint32_t version, target;
};

constexpr Requirement kRequirements[] = {
    // Integers, logic, bits
    {"add|addc|sub|subc|mad|madc", "cc u64|s64", 43, 0},
    {"mad", "cc", 30, 0},
    {"madc", "", 30, 0},
    {"add|min|max", "u16x2|s16x2", 80, 90},
    {"min|max", "relu", 80, 90},
    {"dp4a|dp2a", "", 50, 61},
    {"lop3", "", 43, 50},
    {"lop3", "and|or", 82, 70},
    {"shf", "", 31, 32},
    {"fns", "", 60, 30},
    {"bmsk|szext", "", 76, 70},
    {"vadd2|vsub2|vavrg2|vabsdiff2|vmin2|vmax2|vset2", "", 30, 30},
    {"vadd4|vsub4|vavrg4|vabsdiff4|vmin4|vmax4|vset4", "", 30, 30},
    // Floating point
    {"rcp", "approx f64", 21, 0},
    {"rsqrt", "ftz f64", 40, 0},
    {"tanh", "", 70, 75},
    {"add|sub|mul|fma|set|setp", "f16|f16x2", 42, 53},
    {"neg", "f16|f16x2", 60, 53},
    {"abs", "f16|f16x2", 65, 53},
    {"set", "s16.f16|u16.f16|s32.f16|u32.f16", 65, 53},
    {"min|max", "f16|f16x2|bf16|bf16x2|NaN", 70, 80},
    {"min|max", "xorsign", 72, 86},
    {"ex2", "f16|f16x2", 70, 75},
    {"fma", "relu", 70, 80},
    {"fma", "oob", 81, 90},
    {"neg|abs|fma", "bf16|bf16x2", 70, 80},
    {"add|sub|mul|set|setp|ex2|tanh", "bf16|bf16x2", 78, 90},
    // Conversions
    {"cvt", "pack", 65, 72},
    {"cvt", "pack u4|s4|u2|s2", 65, 75},
    {"cvt", "relu", 70, 80},
    {"cvt", "satfinite", 81, 70},
    {"cvt", "bf16.f32|f16x2.f32|bf16x2.f32|tf32.f32", 70, 80},
    {"cvt", "tf32.f32 rn|rz", 78, 90},
    {"cvt", "f32.bf16", 71, 80},
    {"cvt", "f32.bf16 rn|rz|rm|rp|ftz", 78, 90},
    {"cvt", "bf16.bf16|f16.bf16|f64.bf16|bf16.f16|bf16.f64", 78, 90},
    {"cvt", "u16.bf16|u32.bf16|u64.bf16|s16.bf16|s32.bf16|s64.bf16", 78, 90},
    {"cvt", "bf16.u16|bf16.u32|bf16.u64|bf16.s16|bf16.s32|bf16.s64", 78, 90},
    {"cvt", "e4m3x2.f32|e5m2x2.f32|e4m3x2.f16x2|e5m2x2.f16x2|f16x2.e4m3x2|f16x2.e5m2x2", 78, 89},
    // Data movement
    {"mov|ld|ldu|st", "b128", 83, 70},
    {"ld|st", "b128 sys", 84, 70},
    {"cvta|isspacep", "const", 31, 0},
    {"cvta|isspacep", "param", 77, 70},
    {"cvta|isspacep|ld|st", "param::entry", 83, 0},
    {"cvta|isspacep", "param::entry", 83, 70},
    {"ld|st", "param::func", 83, 0},
    {"cvta|isspacep|ld|st|atom|red", "shared::cta", 78, 0},
    {"cvta|isspacep", "shared::cluster", 78, 90},
    {"ld", "nc", 31, 32},
    {"ld|st", "weak|relaxed|acquire|release", 60, 70},
    {"ld|st", "mmio", 82, 70},
    {"ld|st", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate", 74, 70},
    {"ld", "L2::64B|L2::128B", 74, 75},
    {"ld", "L2::256B", 74, 80},
    {"ld|st|atom|red", "L2::cache_hint", 74, 80},
    {"prefetch", "L2::evict_last|L2::evict_normal", 74, 80},
    {"discard|applypriority", "", 74, 80},
    {"alloca|stacksave|stackrestore", "", 73, 52},
    {"cp", "", 70, 80},
    // Textures and surfaces, by objects
    {"tex|tld4|txq|suld|sust|sured|suq", "", 31, 0},
    {"tld4", "a2d", 43, 30},
    {"txq|suq", "array_size|num_mipmap_levels", 41, 0},
    {"sured", "min|max u64|s64", 81, 50},
    // Atomics
    {"atom|red", "min|max|and|or|xor u64|s64|b64", 31, 32},
    {"atom|red", "cta|gpu|sys", 50, 60},
    {"atom|red", "f64", 50, 60},
    {"atom|red", "relaxed|acquire|release|acq_rel", 60, 70},
    {"atom|red", "f16x2", 62, 60},
    {"atom|red", "f16|b16", 63, 70},
    {"atom|red", "bf16|bf16x2", 78, 90},
    {"atom|red", "v2|v4|v8", 81, 90},
    {"atom", "b128", 83, 90},
    // Among threads
    {"shfl", "", 30, 30},
    {"shfl|vote", "sync", 60, 30},
    {"activemask", "", 62, 30},
    {"match", "", 60, 70},
    {"redux", "", 70, 80},
    {"elect", "", 80, 90},
    {"mma", "", 65, 75},
    {"mma", "m16n8k4|m16n8k16|m16n8k32|bf16", 70, 80},
    {"mma", "tf32", 70, 80},
    {"wmma", "", 60, 70},
    {"wmma", "m8n32k16|m32n8k16", 61, 70},
    {"wmma", "s8|u8", 63, 72},
    {"wmma", "bf16|tf32", 70, 80},
    {"ldmatrix", "", 65, 75},
    {"movmatrix", "", 78, 75},
    {"createpolicy", "", 74, 80},
    {"bar", "warp", 60, 30},
    {"barrier", "", 60, 30},
    {"bar|barrier", "cta", 78, 0},
    {"fence", "", 60, 70},
    {"fence", "alias", 75, 70},
    {"fence", "async|async::generic|mbarrier_init", 80, 90},
    {"fence", "tensormap::generic", 83, 70},
    {"ld|st|atom|red|fence", "cluster", 78, 90},
    {"nanosleep", "", 62, 70},
    {"griddepcontrol", "", 78, 90},
    {"brx", "", 60, 30},
    {"pmevent", "mask", 30, 0},
};

// The same for operands: special registers, by their names without a component.
struct SpecialRequirement {
  std::string_view names;
  uint32_t version, target;
};
constexpr SpecialRequirement kSpecialRequirements[] = {
    {"%clusterid|%nclusterid|%cluster_ctaid|%cluster_nctaid|%cluster_ctarank|%cluster_nctarank", 78, 90},
    {"%is_explicit_cluster", 78, 90},
    {"%clock_hi", 50, 0},
    {"%globaltimer|%globaltimer_lo|%globaltimer_hi", 31, 30},
    {"%dynamic_smem_size|%total_smem_size", 41, 0},
    {"%pm4|%pm5|%pm6|%pm7", 30, 0},
    {"%pm0_64|%pm1_64|%pm2_64|%pm3_64|%pm4_64|%pm5_64|%pm6_64|%pm7_64", 40, 50},
    {"%current_graph_exec", 80, 50},
};

bool has_one_of(const Statement& s, std::string_view group) {
  if (group.find('.') == group.npos) return !s.qualifier_of(group).empty();
  return is_in_group(group, std::string(s.type(1)) + "." + std::string(s.type()));
}

bool applies(const Requirement& requirement, const Statement& s) {
  if (!is_in_group(requirement.ops, s.op)) return false;
  for (size_t begin = 0; begin < requirement.words.size();) {
    const size_t end = std::min(requirement.words.find(' ', begin), requirement.words.size());
    if (!has_one_of(s, requirement.words.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool applies(const SpecialRequirement& requirement, const Statement& s) {
  return std::any_of(s.operands.begin(), s.operands.end(), [&requirement](const Operand& o) {
    return is_in_group(requirement.names, o.text.substr(0, o.text.find('.')));
  });
}

// Describes the first requirement of a table that applies and is not met, or returns "".
template <class Table>
std::string unmet_requirement(const Table& table, const Statement& s, uint32_t version, uint32_t target) {
  for (const auto& requirement : table) {
    if ((requirement.version <= version && requirement.target <= target) || !applies(requirement, s)) continue;
    if (requirement.target > target) return "only of .target sm_" + std::to_string(requirement.target) + " and newer";
    return "only of .version " + std::to_string(requirement.version / 10) + "." + std::to_string(requirement.version % 10) +
           " and newer";
  }
  return "";
}

}  // namespace

std::string required_beyond(const Statement& s, uint32_t version, uint32_t target) {
  std::string found = unmet_requirement(kRequirements, s, version, target);
  return found.empty() ? unmet_requirement(kSpecialRequirements, s, version, target) : found;
}

}  // namespace vgpu
