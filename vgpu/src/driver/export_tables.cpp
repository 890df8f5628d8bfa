// Tables of driver functions that NVIDIA's runtime library requests by a UUID, if it is linked statically into a framework.  They
// are not documented; public descriptions (such as ZLUDA's) say what their entries do.  Only the entries that are used exist, and
// none of the integrity checks.
#include <cstdio>
#include <cstring>
#include <map>

#include "api.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

int unknown(const char* table, int entry) {
  std::fprintf(stderr, "vgpu: entry %d of the table %s is not known\n", entry, table);
  return kNotSupported;
}
template <int kEntry> int unknown_runtime() { return unknown("runtime interface", kEntry); }
template <int kEntry> int unknown_hooks() { return unknown("callback hooks", kEntry); }
template <int kEntry> int unknown_tls() { return unknown("thread storage", kEntry); }
template <int kEntry> int unknown_storage() { return unknown("context storage", kEntry); }

// Entries of the runtime interface.  wrapper: a struct with a pointer to a container (fatbin); header: a container.
int module_of(void** module, const void* wrapper) { return cuModuleLoadData(module, wrapper); }
int primary_context(void** primary, int) { return *primary = context(), kSuccess; }
int module_of_extended(void** module, const void* wrapper, void*, void*, unsigned) { return cuModuleLoadData(module, wrapper); }
int module_of_header(const void* header, void** module, void*, void*, unsigned) { return cuModuleLoadData(module, header); }
void do_nothing(size_t) {}

// Zeroed memory that two entries of the callback hooks hand out; what it is for is not documented.
uint64_t first_buffer[1024], second_buffer[14];
void get_first_buffer(void** buffer, size_t* bytes) { *buffer = first_buffer, *bytes = sizeof first_buffer; }
void get_second_buffer(void** buffer, size_t* bytes) { *buffer = second_buffer, *bytes = sizeof second_buffer; }

// Values that the runtime stores for a context by a key.
struct Storage {
  std::mutex lock;
  std::map<std::pair<void*, void*>, void*> values;
  static Storage& get() {
    static Storage* storage = new Storage;
    return *storage;
  }
};
int put_value(void* owner, void* key, void* value, void (*)(void*, void*, void*)) {
  Storage& storage = Storage::get();
  std::lock_guard<std::mutex> guard(storage.lock);
  return storage.values[{owner ? owner : current_context(), key}] = value, kSuccess;
}
int remove_value(void* owner, void* key) {
  Storage& storage = Storage::get();
  std::lock_guard<std::mutex> guard(storage.lock);
  return storage.values.erase({owner ? owner : current_context(), key}), kSuccess;
}
int get_value(void** value, void* owner, void* key) {
  Storage& storage = Storage::get();
  std::lock_guard<std::mutex> guard(storage.lock);
  auto entry = storage.values.find({owner ? owner : current_context(), key});
  if (entry == storage.values.end()) return kInvalidValue;
  return *value = entry->second, kSuccess;
}

template <class F> void* entry(F* f) { return reinterpret_cast<void*>(f); }
void* bytes(size_t entries) {
  return pointer(entries * sizeof(void*));
}  // the first entry of some tables is their size in bytes

}  // namespace

API int cuGetExportTable(const void** table, const unsigned char* id) {
  if (!table || !id) return kInvalidValue;
  static void* runtime[] = {bytes(16),
                            entry(module_of),
                            entry(primary_context),
                            entry(unknown_runtime<3>),
                            entry(unknown_runtime<4>),
                            entry(unknown_runtime<5>),
                            entry(module_of_extended),
                            entry(do_nothing),
                            entry(module_of_header),
                            entry(unknown_runtime<9>),
                            entry(unknown_runtime<10>),
                            entry(unknown_runtime<11>),
                            entry(unknown_runtime<12>),
                            entry(unknown_runtime<13>),
                            entry(unknown_runtime<14>),
                            entry(unknown_runtime<15>)};
  static void* hooks[] = {bytes(8),
                          entry(unknown_hooks<1>),
                          entry(get_first_buffer),
                          entry(unknown_hooks<3>),
                          entry(unknown_hooks<4>),
                          entry(unknown_hooks<5>),
                          entry(get_second_buffer),
                          entry(unknown_hooks<7>)};
  static void* thread_storage[] = {bytes(4), entry(unknown_tls<1>), entry(unknown_tls<2>), entry(unknown_tls<3>)};
  static void* storage[] = {entry(put_value), entry(remove_value), entry(get_value), entry(unknown_storage<3>)};
  static const struct {
    unsigned char id[16];
    void** table;
  } tables[] = {
      {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}, runtime},
      {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, hooks},
      {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, thread_storage},
      {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}, storage}};
  for (const auto& candidate : tables)
    if (std::memcmp(id, candidate.id, 16) == 0) return *table = candidate.table, kSuccess;
  // The first halves of the UUIDs of the tables that a runtime requests first: of integrity checks, and in CUDA 13 of another one.
  static constexpr unsigned char kRefused[][8] = {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b},
                                                  {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e}};
  for (const auto& half : kRefused)
    if (std::memcmp(id, half, sizeof half) == 0)
      note_unsupported(
          "NVIDIA's runtime library of CUDA 11 or newer, linked into the program: it needs NVIDIA's own driver (link it "
          "dynamically: nvcc -cudart shared)");
  return kNotFound;
}
