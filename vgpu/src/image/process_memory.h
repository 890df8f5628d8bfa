// Reads memory at a caller's pointer, whose size is not known.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "invalid_image.h"

namespace vgpu {

// The size in a damaged container may be wrong, so memory is read as a file: reading unmapped memory then fails without a fault.
class ProcessMemory {
 public:
  ProcessMemory() : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw Unsupported("/proc/self/mem cannot be read");
  }
  ~ProcessMemory() { close(file_); }
  ProcessMemory(const ProcessMemory&) = delete;

  std::string bytes(uint64_t address, uint64_t size) const {
    std::string result(size, 0);
    if (read_up_to(address, result.data(), size) != size) throw InvalidImage("a damaged container: it ends where no memory is");
    return result;
  }
  template <class T> T read(uint64_t address) const {
    T value;
    std::string raw = bytes(address, sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  // Reads up to a zero byte, `max_bytes`, or the end of the mapped memory.
  std::string text(uint64_t address, uint64_t max_bytes) const {
    std::string result;
    while (result.size() < max_bytes) {
      char buffer[4096];
      size_t count = read_up_to(address + result.size(), buffer,
                                std::min<uint64_t>(4096 - (address + result.size()) % 4096, max_bytes - result.size()));
      size_t length = strnlen(buffer, count);
      result.append(buffer, length);
      if (length < count || !count) break;
    }
    return result;
  }

 private:
  uint64_t read_up_to(uint64_t address, char* buffer, uint64_t size) const {
    uint64_t done = 0;
    while (done < size) {
      ssize_t count = pread64(file_, buffer + done, size - done, static_cast<off64_t>(address + done));
      if (count <= 0) break;
      done += static_cast<uint64_t>(count);
    }
    return done;
  }

  int file_;
};

}  // namespace vgpu
