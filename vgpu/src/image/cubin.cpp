// Reads cubins: their functions, constant banks, variables and relocations.
#include "cubin.h"

#include <algorithm>
#include <cstring>

#include "invalid_image.h"
#include "line_table.h"

namespace vgpu {
namespace {

constexpr uint64_t kMaxStorageBytes = 1ull << 30;  // of one section; a damaged header may claim more
constexpr uint32_t kMaxBytes = 1 << 20;            // of shared memory, a stack, parameters

[[noreturn]] void fail(const char* what) { throw InvalidImage(std::string("damaged machine code: ") + what); }

template <class T> T read(std::string_view data, uint64_t position) {
  T value;
  if (position > data.size() || data.size() - position < sizeof value) fail("it ends too soon");
  std::memcpy(&value, data.data() + position, sizeof value);
  return value;
}

std::string text_at(std::string_view table, uint64_t position) {
  if (position >= table.size()) fail("a name that is not there");
  const size_t end = table.find('\0', position);
  if (end == std::string_view::npos) fail("a name without an end");
  return std::string(table.substr(position, end - position));
}

struct Section {
  std::string name;
  Elf64_Shdr header;
  std::string_view bytes;  // empty for sections without data in the file
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
  for (Section& section : sections) section.name = text_at(sections[head.e_shstrndx].bytes, section.header.sh_name);
  return sections;
}

// Returns "k" of ".text.k" for the prefix ".text."; empty: the name has another prefix.
std::string name_after_prefix(const std::string& name, const std::string& prefix) {
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
}

class CubinReader {
 public:
  explicit CubinReader(std::string_view image) : sections_(read_sections(image)) {
    cubin_.arch = arch_of_elf(read<Elf64_Ehdr>(image, 0));
    for (const Section& section : sections_)
      if (section.header.sh_type == SHT_SYMTAB) symbols_ = &section;
  }

  Cubin run() {
    for (size_t k = 0; k < sections_.size(); k++) add_function(k);
    for (const Section& section : sections_) add_function_section(section);
    for (size_t k = 0; k < sections_.size(); k++) add_storage(k);
    add_symbols();
    for (const Section& section : sections_) add_relocations(section);
    for (const Section& section : sections_) add_code_relocations(section);
    add_source_lines();
    return std::move(cubin_);
  }

 private:
  // Attributes in the sections .nv.info (EIATTR_*).
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
    const auto entry = function_index_.find(name);
    return entry == function_index_.end() ? nullptr : &cubin_.functions[entry->second];
  }

  void add_function(size_t index) {
    const Section& section = sections_[index];
    const std::string name = name_after_prefix(section.name, ".text.");
    if (name.empty() || function_index_.count(name)) return;
    function_index_[name] = cubin_.functions.size();
    Cubin::Function added;
    added.name = name, added.code = section.bytes, added.registers = section.header.sh_info >> 24;
    cubin_.functions.push_back(std::move(added));
  }

  // Adds a section that belongs to one function: shared memory, a constant bank, attributes.
  void add_function_section(const Section& section) {
    if (Cubin::Function* owner = function(name_after_prefix(section.name, ".nv.shared."))) {
      if (section.header.sh_size > kMaxBytes) fail("too much shared memory");
      owner->shared_bytes = static_cast<uint32_t>(section.header.sh_size);
      owner->shared_align = alignment(section.header.sh_addralign);
    }
    add_bank(section);
    if (section.name == ".nv.info") read_attributes(section, nullptr);
    if (Cubin::Function* owner = function(name_after_prefix(section.name, ".nv.info."))) read_attributes(section, owner);
  }

  static uint32_t alignment(uint64_t value) {
    return value && value <= 4096 && (value & (value - 1)) == 0 ? std::max<uint32_t>(16, static_cast<uint32_t>(value)) : 16;
  }

  // Adds a constant bank; ".nv.constant2.k" is bank 2 of function k.
  void add_bank(const Section& section) {
    const std::string suffix = name_after_prefix(section.name, ".nv.constant");
    const size_t dot = suffix.find('.');
    if (dot == std::string::npos || dot == 0 || dot > 2 || suffix.find_first_not_of("0123456789") != dot) return;
    if (Cubin::Function* owner = function(suffix.substr(dot + 1)))
      owner->banks[static_cast<uint32_t>(std::stoul(suffix.substr(0, dot)))] = section.bytes;
  }

  // Reads attributes: a byte for the format, a byte for the attribute, and two bytes for the value or, in format 4, the size of the
  // value that follows.
  void read_attributes(const Section& section, Cubin::Function* owner) {
    constexpr uint8_t kSized = 4;
    for (uint64_t position = 0; position + 4 <= section.bytes.size();) {
      const uint8_t format = read<uint8_t>(section.bytes, position), attribute = read<uint8_t>(section.bytes, position + 1);
      const uint16_t size = format == kSized ? read<uint16_t>(section.bytes, position + 2) : 0;
      if (position + 4 + size > section.bytes.size()) fail("an attribute that ends too soon");
      if (owner && size) read_attribute(*owner, attribute, section.bytes.substr(position + 4, size));
      else if (size) read_stack(attribute, section.bytes.substr(position + 4, size));
      position += 4 + size;
    }
  }

  static void read_attribute(Cubin::Function& owner, uint8_t attribute, std::string_view value) {
    if (attribute == kParameterBank) {
      owner.parameter_base = read<uint16_t>(value, 4), owner.parameter_bytes = read<uint16_t>(value, 6);
    } else if (attribute == kParameterInfo) {
      const uint32_t size = read<uint32_t>(value, 8) >> 18;
      owner.parameters.push_back({read<uint16_t>(value, 6), size});
    } else if (attribute == kWideParameterInfo) {
      owner.parameters.push_back({read<uint16_t>(value, 6), read<uint16_t>(value, 8)});
    } else if (attribute == kMaxThreads || attribute == kRequiredThreads) {
      uint64_t product = 1;
      for (uint32_t k = 0; k < 3; k++) {
        const uint32_t size = read<uint32_t>(value, 4 * k);
        product = std::min<uint64_t>(product * size, UINT32_MAX);
        if (attribute == kRequiredThreads) owner.required_block[k] = size;
      }
      if (attribute == kMaxThreads) owner.max_threads = static_cast<uint32_t>(product);
    }
  }

  void read_stack(uint8_t attribute, std::string_view value) {
    if (attribute != kFrameSize && attribute != kMinStackSize) return;
    const uint32_t bytes = read<uint32_t>(value, 4);
    if (bytes > kMaxBytes) return;  // unknown, e.g. of recursive functions
    if (Cubin::Function* owner = function(symbol(read<uint32_t>(value, 0)).name))
      owner->stack_bytes = std::max(owner->stack_bytes, bytes);
  }

  // Adds a storage: a section of variables, which is allocated in device memory.
  void add_storage(size_t index) {
    const Section& section = sections_[index];
    static const char* const names[] = {".nv.global", ".nv.global.init", ".nv.constant3", ".nv.constant4"};
    if (std::find(std::begin(names), std::end(names), section.name) == std::end(names)) return;
    if (section.header.sh_size > kMaxStorageBytes) fail("too large a variable");
    storage_index_[index] = cubin_.storages.size();
    cubin_.storages.push_back({section.name, section.bytes, section.header.sh_size, alignment(section.header.sh_addralign)});
  }

  void add_symbols() {
    constexpr unsigned char kEntry = 0x10;  // of st_other: the symbol is a kernel
    if (!symbols_) return;
    for (uint64_t k = 0; k < symbols_->bytes.size() / sizeof(Elf64_Sym); k++) {
      const Symbol current = symbol(k);
      if (ELF64_ST_TYPE(current.entry.st_info) == STT_FUNC && (current.entry.st_other & kEntry))
        if (Cubin::Function* kernel = function(current.name)) kernel->is_kernel = true;
      const auto section_storage = storage_index_.find(current.entry.st_shndx);
      if (section_storage == storage_index_.end() || current.name.empty() || ELF64_ST_TYPE(current.entry.st_info) != STT_OBJECT)
        continue;
      const uint64_t size = cubin_.storages[section_storage->second].size;
      if (current.entry.st_value > size || current.entry.st_size > size - current.entry.st_value)
        fail("a variable outside of its section");
      cubin_.variables.push_back({current.name, section_storage->second, current.entry.st_value, current.entry.st_size});
    }
  }

  // Calls f(entry, addend) for each relocation of a section.
  template <class F> void for_each_relocation(const Section& section, F f) {
    const bool with_addend = section.header.sh_type == SHT_RELA;
    if ((!with_addend && section.header.sh_type != SHT_REL) || section.header.sh_info >= sections_.size()) return;
    const uint64_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (uint64_t position = 0; position + step <= section.bytes.size(); position += step) {
      const auto relocation = read<Elf64_Rel>(section.bytes, position);
      f(relocation, with_addend ? static_cast<uint64_t>(read<Elf64_Rela>(section.bytes, position).r_addend) : 0);
    }
  }

  void add_relocations(const Section& section) {
    const auto target_storage = storage_index_.find(section.header.sh_info);
    if (target_storage == storage_index_.end()) return;
    for_each_relocation(section, [&](const Elf64_Rel& relocation, uint64_t addend) {
      add_relocation(target_storage->second, relocation, addend);
    });
  }

  void add_code_relocations(const Section& section) {
    for (const char* prefix : {".rel.text.", ".rela.text."})
      if (Cubin::Function* owner = function(name_after_prefix(section.name, prefix)))
        for_each_relocation(section, [&](const Elf64_Rel& relocation, uint64_t addend) {
          owner->relocations.push_back(code_relocation(*owner, relocation, addend));
        });
  }

  Cubin::CodeRelocation code_relocation(const Cubin::Function& owner, const Elf64_Rel& entry, uint64_t addend) const {
    using Result = Cubin::CodeRelocation;
    constexpr uint32_t kLowWord = 0x38, kHighWord = 0x39, kTarget = 0x3a;  // types of relocations (R_CUDA_*)
    constexpr uint64_t kInstruction = 16;
    const uint64_t type = ELF64_R_TYPE(entry.r_info);
    if (entry.r_offset > owner.code.size() || owner.code.size() - entry.r_offset < kInstruction)
      fail("a relocation outside of its code");
    const Result::Field field = type == kLowWord    ? Result::LowWord
                                : type == kHighWord ? Result::HighWord
                                : type == kTarget   ? Result::Target
                                                    : Result::Unknown;
    return {field, entry.r_offset, reference(entry, addend)};
  }

  // Returns what a relocation refers to.  A symbol within a function's code belongs to the function.
  Cubin::Reference reference(const Elf64_Rel& entry, uint64_t addend) const {
    const Symbol referenced = symbol(ELF64_R_SYM(entry.r_info));
    const size_t index = referenced.entry.st_shndx;
    const uint64_t position = referenced.entry.st_value + addend;
    const auto storage = storage_index_.find(index);
    if (storage != storage_index_.end()) return {Cubin::Reference::ToStorage, "", storage->second, position};
    if (index == SHN_UNDEF) return {Cubin::Reference::Outside, referenced.name, 0, position};
    const std::string function_name = index < sections_.size() ? name_after_prefix(sections_[index].name, ".text.") : "";
    return {Cubin::Reference::ToCode, function_name.empty() ? std::string(referenced.name) : function_name, 0, position};
  }

  const Section* section(const std::string& name) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }

  // Adds the lines that the compiler noted (nvcc -lineinfo).  A relocation names the function of each sequence of lines.
  void add_source_lines() {
    const Section* lines = section(".debug_line");
    if (!lines) return;
    std::map<uint64_t, std::string> functions;
    for (const char* name : {".rel.debug_line", ".rela.debug_line"})
      if (const Section* relocations = section(name))
        for_each_relocation(*relocations, [&](const Elf64_Rel& relocation, uint64_t) {
          const uint16_t index = symbol(ELF64_R_SYM(relocation.r_info)).entry.st_shndx;
          if (index < sections_.size()) functions[relocation.r_offset] = name_after_prefix(sections_[index].name, ".text.");
        });
    const LineTables tables = read_line_tables(lines->bytes, [&](uint64_t position) {
      const auto entry = functions.find(position);
      return entry == functions.end() ? "" : entry->second;
    });
    for (const auto& [name, source_lines] : tables)
      if (Cubin::Function* owner = function(name)) owner->source_lines = source_lines;
  }

  void add_relocation(size_t storage, const Elf64_Rel& entry, uint64_t addend) {
    constexpr uint32_t kAddress = 2, kGenericAddress = 4;  // both of 64 bits
    const uint64_t type = ELF64_R_TYPE(entry.r_info), size = cubin_.storages[storage].size;
    if (type != kAddress && type != kGenericAddress) throw Unsupported("machine code with a relocation that is not known");
    if (entry.r_offset > size || size - entry.r_offset < 8) fail("a relocation outside of its section");
    cubin_.relocations.push_back({storage, entry.r_offset, reference(entry, addend)});
  }

  std::vector<Section> sections_;
  const Section* symbols_ = nullptr;
  std::map<std::string, size_t> function_index_;
  std::map<size_t, size_t> storage_index_;
  Cubin cubin_;
};

}  // namespace

// The flags contain the architecture, in the second byte since version 8 of the format, before in the first.
uint32_t arch_of_elf(const Elf64_Ehdr& header) {
  constexpr unsigned char kWiderFlags = 8;
  return header.e_ident[EI_ABIVERSION] >= kWiderFlags ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
}

Cubin read_cubin(std::string_view image) {
  Cubin cubin = CubinReader(image).run();
  for (Cubin::Function& kernel : cubin.functions) {
    std::sort(kernel.parameters.begin(), kernel.parameters.end(),
              [](const Cubin::Parameter& a, const Cubin::Parameter& b) { return a.offset < b.offset; });
    for (const Cubin::Parameter& parameter : kernel.parameters)
      if (parameter.size > kernel.parameter_bytes || parameter.offset > kernel.parameter_bytes - parameter.size)
        throw InvalidImage("damaged machine code: a parameter beyond the last");
  }
  return cubin;
}

}  // namespace vgpu
