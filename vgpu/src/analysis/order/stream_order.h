// Vector clocks (Fidge 1988, Mattern 1989) of streams: which operations (launches, copies, fills) are complete before which others
// in every schedule, by the order of a stream, events, waits of the host and the legacy default stream.
//
// Assumes that the host is one thread.  A query that reports that work is complete counts as a wait of the host.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace vgpu {

class StreamOrder {
 public:
  using StreamNumber = uint32_t;  // not reused; kLegacy: the legacy default stream
  using Operation = uint32_t;  // from 1 on; or a set of several (unite())
  static constexpr StreamNumber kLegacy = 0;

  // blocking: whether the stream and the legacy default stream wait for each other.
  Operation add(StreamNumber stream, bool blocking);
  // Sets the operation that runs now, with which is_before_current() compares.
  void set_current(Operation operation);
  bool is_before_current(Operation operation) const;
  bool are_all_before_current() const;  // except itself
  Operation unite(Operation first, Operation second);  // a set that is before an operation if both are

  void record(uint64_t event, StreamNumber stream, bool blocking);
  void wait(StreamNumber stream, uint64_t event);
  void on_host_wait(StreamNumber stream, bool blocking);
  void on_host_wait_event(uint64_t event);
  void on_host_wait_all();
  // Whether all work of the stream, or before the event, is complete for the host in every schedule.
  bool is_before_host(StreamNumber stream, bool blocking);
  bool is_before_host(uint64_t event) const;

 private:
  using Clock = std::vector<uint32_t>;  // for each stream, the number of its complete operations
  struct Point {  // an operation's stream, and its number in this, from 1 on
    StreamNumber stream;
    uint32_t count;
  };
  using Members = std::vector<Operation>;
  static constexpr Operation kUnited = 1u << 31;

  static void join(Clock& clock, const Clock& other);
  bool is_known_to_host(const Clock& clock) const;
  Clock& clock(StreamNumber stream) { return streams_[stream]; }
  // Returns the clock after which the stream's next operation comes.
  Clock& arrive(StreamNumber stream, bool blocking);
  bool is_before(Operation operation, const Clock& now) const;
  Members members(Operation operation) const;

  mutable std::mutex lock_;
  std::map<StreamNumber, Clock> streams_;
  std::map<StreamNumber, bool> blocking_;
  std::map<uint64_t, Clock> events_;
  Clock host_, current_;
  std::map<Operation, Clock> pending_;  // clocks of operations that have not begun
  std::vector<Point> operations_;
  Operation current_operation_ = 0;
  std::vector<Members> united_;
  std::map<Members, Operation> united_index_;
};

}  // namespace vgpu
