// flight_recorder: the last 64 collectives of a communicator: kind, shape, begin, end, and whether one is still
// running.
//
// Thread: the thread that uses the communicator writes, the watchdog's thread reads; a mutex guards the records.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/comm.h"

namespace pal::dist {

struct CollectiveRecord {
  int64_t number = 0;  // of the communicator's collectives, from 1
  const char* kind = "";
  std::array<int64_t, 4> shape{};  // of what this rank gives; `sides` of them are used
  int sides = 0;
  std::chrono::steady_clock::time_point begin, end;
  bool pending = false;
};

class FlightRecorder {
 public:
  explicit FlightRecorder(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  void begin(const char* kind, at::IntArrayRef shape);
  void end();
  CollectiveRecord newest() const;
  std::vector<CollectiveRecord> all() const;  // oldest first
  // For asynchronous collectives: `waiting` returns the begin of the oldest one that is not done. The newest record
  // then counts as pending since that moment.
  void watch(std::function<std::optional<std::chrono::steady_clock::time_point>()> waiting);

 private:
  static constexpr size_t kKept = 64;
  const std::string name_;
  mutable std::mutex mutex_;
  std::array<CollectiveRecord, kKept> ring_;
  int64_t count_ = 0;
  std::function<std::optional<std::chrono::steady_clock::time_point>()> waiting_;
};

// A communicator that forwards to `comm` and records its collectives in `log`, which must outlive it.
std::unique_ptr<comm::Comm> record_collectives(std::unique_ptr<comm::Comm> comm, FlightRecorder& log);

}  // namespace pal::dist
