// Texture and surface objects, which kernels name by 64-bit handles.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

namespace vgpu {

class DeviceMemory;

// The format of one channel of a texel, numbered as in cuda.h (CUarray_format).
enum class Format : uint32_t { U8 = 1, U16 = 2, U32 = 3, S8 = 8, S16 = 9, S32 = 10, Half = 16, Float = 32 };

uint32_t bytes_of(Format format);  // 0: not one of these formats
inline bool is_float(Format format) { return format == Format::Half || format == Format::Float; }

// The texels of one mipmap level, in a CUDA array or in linear memory.
struct Texels {
  uint64_t at = 0, bytes = 0;
  uint64_t allocation = 0;  // of an array: number of its allocation, to detect that the array was freed
  bool array = false;
  Format format = Format::Float;
  uint32_t channels = 1;
  uint64_t width = 1, height = 1, depth = 1;  // 1: no such dimension
  uint64_t layers = 1;
  uint64_t pitch = 0, slice = 0;  // bytes between rows, and between slices or layers

  uint32_t texel_bytes() const { return bytes_of(format) * channels; }
  bool is_alive(const DeviceMemory& memory) const;  // whether its memory is still allocated
};

enum class AddressMode : uint8_t { Wrap, Clamp, Mirror, Border };

struct Texture {
  Texels texels;
  AddressMode address[3] = {AddressMode::Clamp, AddressMode::Clamp, AddressMode::Clamp};
  bool linear = false;      // filtering; otherwise the nearest texel
  bool normalized = false;  // coordinates
  bool reads_integers_as_floats = false;    // integers of 8 and 16 bits are read as floats in [0, 1] or [-1, 1]
  bool is_zero_outside = false;     // one-dimensional linear memory: texels outside are zero, whatever the address mode
  float border[4] = {0, 0, 0, 0};
};

struct Surface { Texels texels; };

// All texture and surface objects of the device.  Handles are not reused.
class TextureObjects {
 public:
  uint64_t add(const Texture& texture) { return add(textures_, texture); }
  uint64_t add(const Surface& surface) { return add(surfaces_, surface); }
  bool remove_texture(uint64_t handle) { return remove(textures_, handle); }
  bool remove_surface(uint64_t handle) { return remove(surfaces_, handle); }
  bool find(uint64_t handle, Texture& texture) const { return find(textures_, handle, texture); }
  bool find(uint64_t handle, Surface& surface) const { return find(surfaces_, handle, surface); }

 private:
  template <class T> uint64_t add(std::map<uint64_t, T>& objects, const T& object) {
    std::lock_guard<std::mutex> guard(lock_);
    objects[++last_handle_] = object;
    return last_handle_;
  }
  template <class T> bool remove(std::map<uint64_t, T>& objects, uint64_t handle) {
    std::lock_guard<std::mutex> guard(lock_);
    return objects.erase(handle) == 1;
  }
  template <class T> bool find(const std::map<uint64_t, T>& objects, uint64_t handle, T& object) const {
    std::lock_guard<std::mutex> guard(lock_);
    auto entry = objects.find(handle);
    return entry != objects.end() && (object = entry->second, true);
  }

  mutable std::mutex lock_;
  std::map<uint64_t, Texture> textures_;
  std::map<uint64_t, Surface> surfaces_;
  uint64_t last_handle_ = 0;
};

}  // namespace vgpu
