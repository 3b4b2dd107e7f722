#include "dist/comm/flight_recorder.h"

#include <algorithm>

namespace pal::dist {
namespace {

class LoggedComm final : public comm::Comm {
 public:
  LoggedComm(std::unique_ptr<comm::Comm> comm, FlightRecorder& log) : comm_(std::move(comm)), log_(log) {}
  int rank() const override { return comm_->rank(); }
  int size() const override { return comm_->size(); }

  void barrier() override {
    const Entry entry(log_, "barrier", {});
    comm_->barrier();
  }
  void all_reduce(at::Tensor t, comm::ReduceOp op) override {
    const Entry entry(log_, "all_reduce", t.sizes());
    comm_->all_reduce(t, op);
  }
  at::Tensor all_gather(const at::Tensor& t) override {
    const Entry entry(log_, "all_gather", t.sizes());
    return comm_->all_gather(t);
  }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    const Entry entry(log_, "all_gather_v", t.sizes());
    return comm_->all_gather_v(t, counts);
  }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) override {
    const Entry entry(log_, "gather_v", t.sizes());
    return comm_->gather_v(t, counts, root);
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    const Entry entry(log_, "reduce_scatter", t.sizes());
    return comm_->reduce_scatter(t, counts);
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send,
                          const std::vector<int64_t>& recv) override {
    const Entry entry(log_, "all_to_all_v", t.sizes());
    return comm_->all_to_all_v(t, send, recv);
  }
  void broadcast(at::Tensor t, int root) override {
    const Entry entry(log_, "broadcast", t.sizes());
    comm_->broadcast(t, root);
  }

 private:
  struct Entry {
    FlightRecorder& log;
    Entry(FlightRecorder& l, const char* kind, at::IntArrayRef shape) : log(l) { log.begin(kind, shape); }
    ~Entry() { log.end(); }
  };
  std::unique_ptr<comm::Comm> comm_;
  FlightRecorder& log_;
};

}  // namespace

void FlightRecorder::begin(const char* kind, at::IntArrayRef shape) {
  const std::lock_guard lock(mutex_);
  CollectiveRecord& f = ring_[count_++ % kKept];
  f.number = count_;
  f.kind = kind;
  f.sides = static_cast<int>(std::min(shape.size(), f.shape.size()));
  std::copy_n(shape.begin(), f.sides, f.shape.begin());
  f.begin = std::chrono::steady_clock::now();
  f.pending = true;
}

void FlightRecorder::end() {
  const std::lock_guard lock(mutex_);
  CollectiveRecord& f = ring_[(count_ - 1) % kKept];
  f.end = std::chrono::steady_clock::now();
  f.pending = false;
}

CollectiveRecord FlightRecorder::newest() const {
  const std::lock_guard lock(mutex_);
  CollectiveRecord f = count_ == 0 ? CollectiveRecord{} : ring_[(count_ - 1) % kKept];
  if (f.pending || !waiting_) return f;
  if (const auto since = waiting_()) {
    f.pending = true;
    f.begin = *since;
  }
  return f;
}

void FlightRecorder::watch(std::function<std::optional<std::chrono::steady_clock::time_point>()> waiting) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(waiting);
}

std::vector<CollectiveRecord> FlightRecorder::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<CollectiveRecord> flights;
  for (int64_t k = std::max<int64_t>(0, count_ - static_cast<int64_t>(kKept)); k < count_; ++k)
    flights.push_back(ring_[k % kKept]);
  if (const auto since = waiting_ ? waiting_() : std::nullopt) {
    for (CollectiveRecord& f : flights) f.pending = f.pending || f.end >= *since;
  }
  return flights;
}

std::unique_ptr<comm::Comm> record_collectives(std::unique_ptr<comm::Comm> comm, FlightRecorder& log) {
  return std::make_unique<LoggedComm>(std::move(comm), log);
}

}  // namespace pal::dist
