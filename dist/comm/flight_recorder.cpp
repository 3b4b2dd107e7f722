#include "dist/comm/flight_recorder.h"

#include <algorithm>

namespace pal::dist {
namespace {

class RecordedComm final : public comm::ForwardingComm {
 public:
  RecordedComm(std::unique_ptr<comm::Comm> comm, FlightRecorder& log)
      : ForwardingComm(*comm), comm_(std::move(comm)), log_(log) {}

 private:
  void begin(const char* kind, at::IntArrayRef shape) override { log_.begin(kind, shape); }
  void end(const at::Tensor*) override { log_.end(); }

  std::unique_ptr<comm::Comm> comm_;
  FlightRecorder& log_;
};

}  // namespace

void FlightRecorder::begin(const char* kind, at::IntArrayRef shape) {
  const std::lock_guard lock(mutex_);
  CollectiveRecord& record = ring_[count_++ % kKept];
  record.number = count_;
  record.kind = kind;
  record.sides = static_cast<int>(std::min(shape.size(), record.shape.size()));
  std::copy_n(shape.begin(), record.sides, record.shape.begin());
  record.begin = std::chrono::steady_clock::now();
  record.pending = true;
}

void FlightRecorder::end() {
  const std::lock_guard lock(mutex_);
  CollectiveRecord& record = ring_[(count_ - 1) % kKept];
  record.end = std::chrono::steady_clock::now();
  record.pending = false;
}

CollectiveRecord FlightRecorder::newest() const {
  const std::lock_guard lock(mutex_);
  CollectiveRecord record = count_ == 0 ? CollectiveRecord{} : ring_[(count_ - 1) % kKept];
  if (record.pending || !waiting_) return record;
  if (const auto since = waiting_()) {
    record.pending = true;
    record.begin = *since;
  }
  return record;
}

void FlightRecorder::watch(std::function<std::optional<std::chrono::steady_clock::time_point>()> waiting) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(waiting);
}

std::vector<CollectiveRecord> FlightRecorder::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<CollectiveRecord> records;
  for (int64_t k = std::max<int64_t>(0, count_ - static_cast<int64_t>(kKept)); k < count_; ++k)
    records.push_back(ring_[k % kKept]);
  if (const auto since = waiting_ ? waiting_() : std::nullopt) {
    for (CollectiveRecord& record : records) record.pending = record.pending || record.end >= *since;
  }
  return records;
}

std::unique_ptr<comm::Comm> record_collectives(std::unique_ptr<comm::Comm> comm, FlightRecorder& log) {
  return std::make_unique<RecordedComm>(std::move(comm), log);
}

}  // namespace pal::dist
