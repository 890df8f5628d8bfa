// Handles that programs hold.  Each is looked up before it is used, so that an invalid handle is a CUDA error and not a crash.
#pragma once
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace vgpu {

template <class T> class Handles {
 public:
  static Handles& all() {
    static Handles* handles = new Handles;  // never destroyed: libraries may call while the process exits
    return *handles;
  }

  T* add(std::unique_ptr<T> object) {
    std::lock_guard<std::mutex> guard(lock_);
    T* handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  // Returns nullptr for an invalid handle.
  T* find(const void* handle) {
    std::lock_guard<std::mutex> guard(lock_);
    auto entry = objects_.find(handle);
    return entry == objects_.end() ? nullptr : entry->second.get();
  }
  // Destroys all objects for which f(object) is true.
  template <class F> void erase_where(F f) {
    std::lock_guard<std::mutex> guard(lock_);
    for (auto entry = objects_.begin(); entry != objects_.end();)
      entry = f(*entry->second) ? objects_.erase(entry) : std::next(entry);
  }
  // Removes an object and returns it; nullptr for an invalid handle.
  std::unique_ptr<T> remove(const void* handle) {
    std::lock_guard<std::mutex> guard(lock_);
    auto entry = objects_.find(handle);
    if (entry == objects_.end()) return nullptr;
    std::unique_ptr<T> object = std::move(entry->second);
    objects_.erase(entry);
    return object;
  }

 private:
  std::mutex lock_;
  std::unordered_map<const void*, std::unique_ptr<T>> objects_;
};

// Returns the object of a handle; nullptr if the handle is invalid.
template <class T> T* find_alive(const void* handle) { return Handles<T>::all().find(handle); }

}  // namespace vgpu
