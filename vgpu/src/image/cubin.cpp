// Reads the ELF file of machine code: its functions, constant banks, variables and relocations.
#include "cubin.h"

#include <algorithm>
#include <cstring>

#include "invalid_image.h"

namespace vgpu {
namespace {

constexpr uint64_t kMaxStorageBytes = 1ull << 30;  // of one section, whatever a damaged header says
constexpr uint32_t kMaxBytes = 1 << 20;            // of shared memory, a stack, parameters

[[noreturn]] void fail(const char* what) { throw InvalidImage(std::string("damaged machine code: ") + what); }

template <class T> T read(std::string_view from, uint64_t at) {
  T value;
  if (at > from.size() || from.size() - at < sizeof value) fail("it ends too soon");
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

std::string text_at(std::string_view table, uint64_t at) {
  if (at >= table.size()) fail("a name that is not there");
  const size_t end = table.find('\0', at);
  if (end == std::string_view::npos) fail("a name without an end");
  return std::string(table.substr(at, end - at));
}

struct Section {
  std::string name;
  Elf64_Shdr header;
  std::string_view bytes;  // none of what a file does not hold
};

std::vector<Section> read_sections(std::string_view image) {
  const auto head = read<Elf64_Ehdr>(image, 0);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) fail("not ELF of 64 bits");
  std::vector<Section> sections(head.e_shnum);
  for (uint64_t k = 0; k < sections.size(); k++) {
    const Elf64_Shdr header = read<Elf64_Shdr>(image, head.e_shoff + k * sizeof(Elf64_Shdr));
    sections[k].header = header;
    if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) continue;
    if (header.sh_offset > image.size() || header.sh_size > image.size() - header.sh_offset) fail("a section beyond its end");
    sections[k].bytes = image.substr(header.sh_offset, header.sh_size);
  }
  if (head.e_shstrndx >= sections.size()) fail("sections without names");
  for (Section& one : sections) one.name = text_at(sections[head.e_shstrndx].bytes, one.header.sh_name);
  return sections;
}

// "k" of ".text.k"; empty: it has another name.
std::string name_behind(const std::string& name, const std::string& prefix) {
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
}

class Reader {
 public:
  explicit Reader(std::string_view image) : sections_(read_sections(image)) {
    cubin_.arch = arch_of_elf(read<Elf64_Ehdr>(image, 0));
    for (const Section& one : sections_)
      if (one.header.sh_type == SHT_SYMTAB) symbols_ = &one;
  }

  Cubin run() {
    for (size_t k = 0; k < sections_.size(); k++) add_function(k);
    for (const Section& one : sections_) add_parts(one);
    for (size_t k = 0; k < sections_.size(); k++) add_storage(k);
    add_symbols();
    for (const Section& one : sections_) add_relocations(one);
    for (const Section& one : sections_) add_code_relocations(one);
    return std::move(cubin_);
  }

 private:
  enum Attribute : uint8_t {
    kMaxThreads = 0x05,
    kParameterBank = 0x0a,
    kRequiredThreads = 0x10,
    kFrameSize = 0x11,
    kMinStackSize = 0x12,
    kParameterInfo = 0x17,
    kWideParameterInfo = 0x45  // of kernels that have more than 4 KiB of parameters
  };

  struct Symbol {
    Elf64_Sym entry;
    std::string name;
  };

  Symbol symbol(uint64_t index) const {
    if (!symbols_ || symbols_->header.sh_link >= sections_.size()) fail("no symbols");
    const auto entry = read<Elf64_Sym>(symbols_->bytes, index * sizeof(Elf64_Sym));
    return {entry, text_at(sections_[symbols_->header.sh_link].bytes, entry.st_name)};
  }

  Cubin::Function* function(const std::string& name) {
    const auto found = function_index_.find(name);
    return found == function_index_.end() ? nullptr : &cubin_.functions[found->second];
  }

  void add_function(size_t index) {
    const Section& section = sections_[index];
    const std::string name = name_behind(section.name, ".text.");
    if (name.empty() || function_index_.count(name)) return;
    function_index_[name] = cubin_.functions.size();
    Cubin::Function made;
    made.name = name, made.code = section.bytes, made.registers = section.header.sh_info >> 24;
    cubin_.functions.push_back(std::move(made));
  }

  // What belongs to one function, or says something of it.
  void add_parts(const Section& section) {
    if (Cubin::Function* of = function(name_behind(section.name, ".nv.shared."))) {
      if (section.header.sh_size > kMaxBytes) fail("too much shared memory");
      of->shared_bytes = static_cast<uint32_t>(section.header.sh_size);
      of->shared_align = alignment(section.header.sh_addralign);
    }
    add_bank(section);
    if (section.name == ".nv.info") read_attributes(section, nullptr);
    if (Cubin::Function* of = function(name_behind(section.name, ".nv.info."))) read_attributes(section, of);
  }

  static uint32_t alignment(uint64_t value) {
    return value && value <= 4096 && (value & (value - 1)) == 0 ? std::max<uint32_t>(16, static_cast<uint32_t>(value)) : 16;
  }

  // ".nv.constant2.k": bank 2 of k.
  void add_bank(const Section& section) {
    const std::string rest = name_behind(section.name, ".nv.constant");
    const size_t dot = rest.find('.');
    if (dot == std::string::npos || dot == 0 || dot > 2 || rest.find_first_not_of("0123456789") != dot) return;
    if (Cubin::Function* of = function(rest.substr(dot + 1)))
      of->banks[static_cast<uint32_t>(std::stoul(rest.substr(0, dot)))] = section.bytes;
  }

  // A byte of format, one that names the attribute, and two of value or, in format 4, of the size of what follows.
  void read_attributes(const Section& section, Cubin::Function* of) {
    constexpr uint8_t kSized = 4;
    for (uint64_t at = 0; at + 4 <= section.bytes.size();) {
      const uint8_t format = read<uint8_t>(section.bytes, at), attribute = read<uint8_t>(section.bytes, at + 1);
      const uint16_t size = format == kSized ? read<uint16_t>(section.bytes, at + 2) : 0;
      if (at + 4 + size > section.bytes.size()) fail("an attribute that ends too soon");
      if (of && size) read_attribute(*of, attribute, section.bytes.substr(at + 4, size));
      else if (size) read_stack(attribute, section.bytes.substr(at + 4, size));
      at += 4 + size;
    }
  }

  static void read_attribute(Cubin::Function& of, uint8_t attribute, std::string_view value) {
    if (attribute == kParameterBank) {
      of.parameter_base = read<uint16_t>(value, 4), of.parameter_bytes = read<uint16_t>(value, 6);
    } else if (attribute == kParameterInfo) {
      const uint32_t size = read<uint32_t>(value, 8) >> 18;
      of.parameters.push_back({read<uint16_t>(value, 6), size});
    } else if (attribute == kWideParameterInfo) {
      of.parameters.push_back({read<uint16_t>(value, 6), read<uint16_t>(value, 8)});
    } else if (attribute == kMaxThreads || attribute == kRequiredThreads) {
      uint64_t product = 1;
      for (uint32_t k = 0; k < 3; k++) {
        const uint32_t size = read<uint32_t>(value, 4 * k);
        product = std::min<uint64_t>(product * size, UINT32_MAX);
        if (attribute == kRequiredThreads) of.required_block[k] = size;
      }
      if (attribute == kMaxThreads) of.most_threads = static_cast<uint32_t>(product);
    }
  }

  void read_stack(uint8_t attribute, std::string_view value) {
    if (attribute != kFrameSize && attribute != kMinStackSize) return;
    const uint32_t bytes = read<uint32_t>(value, 4);
    if (bytes > kMaxBytes) return;  // what cannot be known, as of functions that call themselves
    if (Cubin::Function* of = function(symbol(read<uint32_t>(value, 0)).name))
      of->stack_bytes = std::max(of->stack_bytes, bytes);
  }

  void add_storage(size_t index) {
    const Section& section = sections_[index];
    static const char* const names[] = {".nv.global", ".nv.global.init", ".nv.constant3", ".nv.constant4"};
    if (std::find(std::begin(names), std::end(names), section.name) == std::end(names)) return;
    if (section.header.sh_size > kMaxStorageBytes) fail("too large a variable");
    storage_index_[index] = cubin_.storages.size();
    cubin_.storages.push_back({section.name, section.bytes, section.header.sh_size, alignment(section.header.sh_addralign)});
  }

  void add_symbols() {
    constexpr unsigned char kEntry = 0x10;  // in st_other: a kernel
    if (!symbols_) return;
    for (uint64_t k = 0; k < symbols_->bytes.size() / sizeof(Elf64_Sym); k++) {
      const Symbol one = symbol(k);
      if (ELF64_ST_TYPE(one.entry.st_info) == STT_FUNC && (one.entry.st_other & kEntry))
        if (Cubin::Function* of = function(one.name)) of->is_kernel = true;
      const auto held = storage_index_.find(one.entry.st_shndx);
      if (held == storage_index_.end() || one.name.empty() || ELF64_ST_TYPE(one.entry.st_info) != STT_OBJECT) continue;
      const uint64_t size = cubin_.storages[held->second].size;
      if (one.entry.st_value > size || one.entry.st_size > size - one.entry.st_value) fail("a variable outside of its section");
      cubin_.variables.push_back({one.name, held->second, one.entry.st_value, one.entry.st_size});
    }
  }

  // f(entry, addend) for each.
  template <class F> void for_each_relocation(const Section& section, F f) {
    const bool with_addend = section.header.sh_type == SHT_RELA;
    if ((!with_addend && section.header.sh_type != SHT_REL) || section.header.sh_info >= sections_.size()) return;
    const uint64_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (uint64_t at = 0; at + step <= section.bytes.size(); at += step) {
      const auto one = read<Elf64_Rel>(section.bytes, at);
      f(one, with_addend ? static_cast<uint64_t>(read<Elf64_Rela>(section.bytes, at).r_addend) : 0);
    }
  }

  void add_relocations(const Section& section) {
    const auto into = storage_index_.find(section.header.sh_info);
    if (into == storage_index_.end()) return;
    for_each_relocation(section, [&](const Elf64_Rel& one, uint64_t addend) { add_relocation(into->second, one, addend); });
  }

  void add_code_relocations(const Section& section) {
    for (const char* prefix : {".rel.text.", ".rela.text."})
      if (Cubin::Function* of = function(name_behind(section.name, prefix)))
        for_each_relocation(section, [&](const Elf64_Rel& one, uint64_t addend) {
          of->relocations.push_back(code_relocation(*of, one, addend));
        });
  }

  Cubin::CodeRelocation code_relocation(const Cubin::Function& of, const Elf64_Rel& one, uint64_t addend) const {
    using Made = Cubin::CodeRelocation;
    constexpr uint32_t kLowWord = 0x38, kHighWord = 0x39, kTarget = 0x3a;
    constexpr uint64_t kInstruction = 16;
    const uint64_t type = ELF64_R_TYPE(one.r_info);
    if (one.r_offset > of.code.size() || of.code.size() - one.r_offset < kInstruction) fail("a relocation outside of its code");
    const Symbol to = symbol(ELF64_R_SYM(one.r_info));
    Made made;
    made.field = type == kLowWord    ? Made::LowWord
                 : type == kHighWord ? Made::HighWord
                 : type == kTarget   ? Made::Target
                                     : Made::Unknown;
    made.offset = one.r_offset, made.name = to.name, made.addend = to.entry.st_value + addend;
    const auto held = storage_index_.find(to.entry.st_shndx);
    made.kind = to.entry.st_shndx == SHN_UNDEF ? Made::Outside : Made::OfCode;
    if (held != storage_index_.end()) made.kind = Made::OfStorage, made.target = held->second;
    return made;
  }

  void add_relocation(size_t storage, const Elf64_Rel& one, uint64_t addend) {
    constexpr uint32_t kAddress = 2, kGenericAddress = 4;  // both of 64 bits
    const uint64_t type = ELF64_R_TYPE(one.r_info), size = cubin_.storages[storage].size;
    if (type != kAddress && type != kGenericAddress) throw Unsupported("machine code with a relocation that is not known");
    if (one.r_offset > size || size - one.r_offset < 8) fail("a relocation outside of its section");
    const Symbol to = symbol(ELF64_R_SYM(one.r_info));
    Cubin::Relocation made;
    made.storage = storage, made.offset = one.r_offset, made.name = to.name;
    const auto held = storage_index_.find(to.entry.st_shndx);
    made.is_outside = held == storage_index_.end();
    if (!made.is_outside) made.target = held->second, made.addend = to.entry.st_value + addend;
    cubin_.relocations.push_back(std::move(made));
  }

  std::vector<Section> sections_;
  const Section* symbols_ = nullptr;
  std::map<std::string, size_t> function_index_;
  std::map<size_t, size_t> storage_index_;
  Cubin cubin_;
};

}  // namespace

// It stands in the flags; since version 8 of the format one byte further.
uint32_t arch_of_elf(const Elf64_Ehdr& header) {
  constexpr unsigned char kWiderFlags = 8;
  return header.e_ident[EI_ABIVERSION] >= kWiderFlags ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
}

Cubin read_cubin(std::string_view image) {
  Cubin made = Reader(image).run();
  for (Cubin::Function& one : made.functions) {
    std::sort(one.parameters.begin(), one.parameters.end(),
              [](const Cubin::Parameter& a, const Cubin::Parameter& b) { return a.offset < b.offset; });
    for (const Cubin::Parameter& parameter : one.parameters)
      if (parameter.size > one.parameter_bytes || parameter.offset > one.parameter_bytes - parameter.size)
        throw InvalidImage("damaged machine code: a parameter beyond the last");
  }
  return made;
}

}  // namespace vgpu
