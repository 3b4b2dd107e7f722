#include "dist/train/checkpointer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/ops/named_tensors.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

constexpr int64_t kSumWords = 4;  // a SHA-256

void put_sum(const std::string& hex, int64_t* words) {
  for (int64_t w = 0; w < kSumWords; ++w)
    words[w] = static_cast<int64_t>(std::stoull(hex.substr(16 * w, 16), nullptr, 16));
}

std::string sum_at(const int64_t* words) {
  std::string hex;
  for (int64_t w = 0; w < kSumWords; ++w) {
    for (int shift = 60; shift >= 0; shift -= 4)
      hex += "0123456789abcdef"[(static_cast<uint64_t>(words[w]) >> shift) & 15];
  }
  return hex;
}

}  // namespace

// Host memory for a copy of a state, so that training continues while the copy is written. Tensors are copied in their
// memory layout: the copy runs at the speed of memory.
class Staging {
 public:
  // Reserves memory for these tensors, which must keep their sizes and addresses.
  explicit Staging(ops::NamedTensors live);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void touch();            // maps the pages, so that the first copy is as fast as the others
  void copy(int threads);  // live → staged
  const ops::NamedTensors& staged() const { return staged_; }  // same names, sizes and strides

 private:
  const ops::NamedTensors live_;
  ops::NamedTensors staged_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

namespace {

constexpr size_t kAlign = 64, kPage = 4096;
constexpr size_t kCopyBytes = 8 << 20;  // large enough for memcpy to bypass the cache

size_t aligned_bytes(const at::Tensor& t) { return (t.nbytes() + kAlign - 1) / kAlign * kAlign; }

}  // namespace

Staging::Staging(ops::NamedTensors live) : live_(std::move(live)) {
  for (const auto& named : live_) {
    PAL_ASSERT(named.second.is_non_overlapping_and_dense(), "a state's tensors are dense");
    bytes_ += aligned_bytes(named.second);
  }
  if (bytes_ == 0) return;
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PAL_CHECK(memory_ != MAP_FAILED, "no memory for a checkpoint's copy of " + std::to_string(bytes_ >> 20) + " MB",
            std::strerror(errno), "use more ranks or more memory");
  madvise(memory_, bytes_, MADV_HUGEPAGE);
  char* at = static_cast<char*>(memory_);
  for (const auto& [name, t] : live_) {
    staged_.emplace_back(name,
                         at::from_blob(at, t.sizes(), t.strides(), t.options().device(at::kCPU).requires_grad(false)));
    at += aligned_bytes(t);
  }
}

Staging::~Staging() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void Staging::touch() {
  for (size_t at = 0; at < bytes_; at += kPage) static_cast<volatile char*>(memory_)[at] = 0;
}

void Staging::copy(int threads) {
  const at::NoGradGuard no_grad;
  struct Piece {
    char* to;
    const char* from;
    size_t bytes;
  };
  std::vector<Piece> pieces;
  for (size_t k = 0; k < live_.size(); ++k) {
    const at::Tensor& live = live_[k].second;
    if (!live.device().is_cpu()) {
      staged_[k].second.copy_(live);
      continue;
    }
    char* to = static_cast<char*>(staged_[k].second.data_ptr());
    const char* from = static_cast<const char*>(live.const_data_ptr());
    for (size_t at = 0; at < live.nbytes(); at += kCopyBytes)
      pieces.push_back({to + at, from + at, std::min(kCopyBytes, live.nbytes() - at)});
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next++; k < pieces.size(); k = next++) std::memcpy(pieces[k].to, pieces[k].from, pieces[k].bytes);
  };
  std::vector<std::jthread> helpers;
  for (int t = 1; t < threads && bytes_ > kCopyBytes; ++t) helpers.emplace_back(work);
  work();
}

namespace {

std::vector<record::TensorGroup> sizes_of(const Checkpointer::Groups& state) {
  std::vector<record::TensorGroup> groups;
  for (const auto& [name, tensors] : state) {
    record::TensorGroup group{name, {}};
    for (const auto& named : tensors) group.bytes.push_back(named.second.nbytes());
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

// run() is the writer thread. It takes one job at a time: a write of this rank's files, or on rank 0 the commit of a
// checkpoint. It does not communicate. `mutex` guards the members below it; the staged tensors belong to the writer
// thread from save() until the write is done.
struct Checkpointer::Writer {
  enum class Job { none, touch, write, commit, stop };

  const CheckpointerOptions options;
  const int rank;
  const std::vector<record::SharedFile> files;
  std::vector<std::unique_ptr<Staging>> staged;  // of this rank's files; null for the others'

  std::mutex mutex;
  std::condition_variable changed;
  Job job = Job::touch;
  record::CheckpointState state;  // of the job
  record::FileSums sums;          // of this rank's files; of all files before a commit
  std::string error;              // of the last write or commit
  std::thread thread;

  Writer(CheckpointerOptions o, int rank, int ranks, const Groups& groups)
      : options(std::move(o)), rank(rank), files(record::share_out(sizes_of(groups), ranks, options.smallest_share)) {
    for (const record::SharedFile& f : files) {
      const ops::NamedTensors& all = groups[f.group].second;
      staged.push_back(f.rank != rank
                           ? nullptr
                           : std::make_unique<Staging>(ops::NamedTensors(all.begin() + static_cast<int64_t>(f.begin),
                                                                         all.begin() + static_cast<int64_t>(f.end))));
    }
    thread = std::thread([this] { run(); });
  }
  ~Writer() {
    give(Job::stop);
    thread.join();
  }

  bool idle() {
    const std::lock_guard lock(mutex);
    return job == Job::none;
  }
  void wait_idle() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return job == Job::none; });
  }
  void give(Job next) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return job == Job::none; });
    job = next;
    changed.notify_all();
  }

  void run() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return job != Job::none; });
      if (job == Job::stop) return;
      const Job now = job;
      lock.unlock();
      std::string failed;
      try {
        perform(now);
      } catch (const std::exception& e) {
        failed = e.what();
      }
      lock.lock();
      error = failed;
      job = Job::none;
      changed.notify_all();
    }
  }

  void perform(Job now) {
    if (now == Job::touch) {
      for (const auto& s : staged) {
        if (s) s->touch();
      }
    } else if (now == Job::write) {
      if (options.before_write) options.before_write(state.step);
      const std::string fresh = record::begin_checkpoint(options.run_dir, state.step);
      sums.clear();
      for (size_t k = 0; k < files.size(); ++k) {
        if (staged[k])
          sums[files[k].name] =
              record::write_checkpoint_file(fresh + "/" + files[k].name, state.step, staged[k]->staged());
      }
      if (rank == 0)
        sums[record::kStateFile] =
            record::write_checkpoint_text(fresh + "/" + record::kStateFile, record::state_text(state));
    } else {
      try {
        record::commit_checkpoint(options.run_dir, state.step, sums, options.keep);
      } catch (...) {
        record::abandon_checkpoint(options.run_dir, state.step);
        throw;
      }
    }
  }

  // The error of the last write or commit, once.
  std::string take_error() {
    const std::lock_guard lock(mutex);
    return std::exchange(error, "");
  }
  void warn_of(const std::string& sentence) const {
    if (sentence.empty() || !options.warn) return;
    const std::vector<int64_t> steps = record::checkpoint_steps(options.run_dir);
    options.warn(
        "the checkpoint of step " + std::to_string(state.step) + " is abandoned: " + sentence +
        (steps.empty() ? "; there is none so far" : "; the last good one is step-" + std::to_string(steps.front())));
  }
};

Checkpointer::Checkpointer(CheckpointerOptions options, comm::Comm& comm, Groups state) : comm_(comm) {
  if (comm.rank() == 0) record::sweep_checkpoints(options.run_dir);
  comm.barrier();  // before another rank writes there
  writer_ = std::make_unique<Writer>(std::move(options), comm.rank(), comm.size(), state);
}

Checkpointer::~Checkpointer() = default;

void Checkpointer::save(const record::CheckpointState& state) {
  const auto start = std::chrono::steady_clock::now();
  if (pending_) {
    writer_->wait_idle();
    settle(exchange());
  }
  writer_->wait_idle();  // rank 0 may still commit the checkpoint before
  writer_->warn_of(writer_->take_error());
  writer_->state = state;
  for (const auto& s : writer_->staged) {
    if (s) s->copy(writer_->options.threads);
  }
  writer_->give(Writer::Job::write);
  pending_ = true;
  failed_ = false;
  blocked_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

CheckpointReport Checkpointer::report() const {
  if (!pending_ || !writer_->idle()) return {pending_ ? 1 : 0, 0};
  const std::lock_guard lock(writer_->mutex);
  return {0, writer_->error.empty() ? 0 : 1};
}

CheckpointReport Checkpointer::exchange() {
  const CheckpointReport mine = report();
  at::Tensor words = at::empty({2}, at::kLong);
  words.data_ptr<int64_t>()[0] = mine.unfinished;
  words.data_ptr<int64_t>()[1] = mine.failed;
  comm_.all_reduce(words, comm::ReduceOp::max);
  return {words.data_ptr<int64_t>()[0], words.data_ptr<int64_t>()[1]};
}

void Checkpointer::settle(const CheckpointReport& all) {
  if (!pending_ || all.unfinished != 0) return;
  pending_ = false;
  failed_ = all.failed != 0;
  if (failed_) {
    writer_->warn_of(writer_->take_error());
    if (writer_->rank == 0) record::abandon_checkpoint(writer_->options.run_dir, writer_->state.step);
    return;
  }
  // Each file is written by one rank, so the sum over ranks is the SHA-256 of that rank.
  const auto count = static_cast<int64_t>(writer_->files.size());
  at::Tensor words = at::zeros({count, kSumWords}, at::kLong);
  int64_t* w = words.data_ptr<int64_t>();
  for (int64_t k = 0; k < count; ++k) {
    if (writer_->staged[k]) put_sum(writer_->sums.at(writer_->files[k].name), w + k * kSumWords);
  }
  comm_.all_reduce(words, comm::ReduceOp::sum);
  if (writer_->rank != 0) return;
  for (int64_t k = 0; k < count; ++k) writer_->sums[writer_->files[k].name] = sum_at(w + k * kSumWords);
  writer_->give(Writer::Job::commit);
}

bool Checkpointer::drain() {
  if (pending_) {
    writer_->wait_idle();
    settle(exchange());
  }
  writer_->wait_idle();
  const std::string sentence = writer_->take_error();
  writer_->warn_of(sentence);
  at::Tensor failed = at::empty({1}, at::kLong);
  failed.data_ptr<int64_t>()[0] = failed_ || !sentence.empty() ? 1 : 0;
  comm_.all_reduce(failed, comm::ReduceOp::max);
  failed_ = failed.data_ptr<int64_t>()[0] != 0;
  return !failed_;
}

}  // namespace pal::dist
