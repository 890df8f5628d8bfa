// Texture and surface objects: what a kernel's 64-bit handle stands for.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

namespace vgpu {

class DeviceMemory;

// Of one channel of a texel; the numbers are cuda.h's (CUarray_format).
enum class Format : uint32_t { U8 = 1, U16 = 2, U32 = 3, S8 = 8, S16 = 9, S32 = 10, Half = 16, Float = 32 };

uint32_t bytes_of(Format format);  // 0: none of these
inline bool is_float(Format format) { return format == Format::Half || format == Format::Float; }

// Texels of one level: a CUDA array, or linear memory that a texture is over.
struct Texels {
  uint64_t at = 0, bytes = 0;
  uint64_t allocation = 0;  // of an array: the number of its allocation; arrays are freed while objects are over them
  bool array = false;
  Format format = Format::Float;
  uint32_t channels = 1;
  uint64_t width = 1, height = 1, depth = 1;  // 1 where there is no such dimension
  uint64_t layers = 1;
  uint64_t pitch = 0, slice = 0;  // bytes from row to row, and from slice to slice (or layer to layer)

  uint32_t texel_bytes() const { return bytes_of(format) * channels; }
  bool alive(const DeviceMemory& memory) const;
};

enum class AddressMode : uint8_t { Wrap, Clamp, Mirror, Border };

struct Texture {
  Texels texels;
  AddressMode address[3] = {AddressMode::Clamp, AddressMode::Clamp, AddressMode::Clamp};
  bool linear = false;      // filtering; otherwise the nearest texel
  bool normalized = false;  // coordinates
  bool promoted = false;    // integers of 8 and 16 bits are read as floats of [0, 1] or [-1, 1]
  bool fetched = false;     // over linear memory of one dimension: outside of it is zero, whatever the address mode says
  float border[4] = {0, 0, 0, 0};
};

struct Surface { Texels texels; };

// All that are alive.  A handle is no other object's later.
class TextureObjects {
 public:
  uint64_t add(const Texture& texture) { return add(textures_, texture); }
  uint64_t add(const Surface& surface) { return add(surfaces_, surface); }
  bool remove_texture(uint64_t handle) { return remove(textures_, handle); }
  bool remove_surface(uint64_t handle) { return remove(surfaces_, handle); }
  bool find(uint64_t handle, Texture& texture) const { return find(textures_, handle, texture); }
  bool find(uint64_t handle, Surface& surface) const { return find(surfaces_, handle, surface); }

 private:
  template <class T> uint64_t add(std::map<uint64_t, T>& all, const T& one) {
    std::lock_guard<std::mutex> hold(lock_);
    all[++last_] = one;
    return last_;
  }
  template <class T> bool remove(std::map<uint64_t, T>& all, uint64_t handle) {
    std::lock_guard<std::mutex> hold(lock_);
    return all.erase(handle) == 1;
  }
  template <class T> bool find(const std::map<uint64_t, T>& all, uint64_t handle, T& one) const {
    std::lock_guard<std::mutex> hold(lock_);
    auto found = all.find(handle);
    return found != all.end() && (one = found->second, true);
  }

  mutable std::mutex lock_;
  std::map<uint64_t, Texture> textures_;
  std::map<uint64_t, Surface> surfaces_;
  uint64_t last_ = 0;
};

}  // namespace vgpu
