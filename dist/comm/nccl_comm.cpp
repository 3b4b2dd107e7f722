// nccl_comm: a DeviceComm over an NcclChannel: what depends on LibTorch's streams and allocator.
//
// Order: before a collective the channel waits for the caller's current stream; after it, or at join(), that stream
//   waits for the channel. The allocator gives freed memory to later work of that stream only, so it needs no
//   record_stream. A tensor of begin_all_reduce must live until join().
#include "dist/comm/device_comm.h"
#include "kernels/base/error.h"

#ifdef PAL_WITH_CUDA
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>

#include "core/comm/rank_slices.h"
#include "dist/comm/nccl_channel.h"
#endif

namespace pal::dist {

#ifndef PAL_WITH_CUDA

std::unique_ptr<DeviceChannels> make_device_channels(int device, double, FlightRecorder&,
                                                     std::function<void(const std::string&)>) {
  PAL_CHECK(false, "this program was built without CUDA and cannot use device", device,
            "build with -DPAL_CUDA=ON, or set train.device=cpu");
  return nullptr;
}

#else

namespace {

using Rows = std::vector<int64_t>;

NcclType nccl_type(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return NcclType::float32;
    case at::kDouble:
      return NcclType::float64;
    case at::kBFloat16:
      return NcclType::bfloat16;
    case at::kInt:
      return NcclType::int32;
    case at::kLong:
      return NcclType::int64;
    case at::kByte:
      return NcclType::uint8;
    default:
      break;
  }
  PAL_ASSERT(false, std::string("no NCCL type for tensors of type ") + c10::toString(t.scalar_type()));
  return NcclType::float32;
}

NcclOp nccl_op(comm::ReduceOp op) {
  return op == comm::ReduceOp::sum ? NcclOp::sum : op == comm::ReduceOp::max ? NcclOp::max : NcclOp::min;
}

at::Tensor rows_like(const at::Tensor& t, int64_t rows) {
  std::vector<int64_t> shape = t.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, t.options());
}

NcclChannel::Counts elements(const Rows& rows, const at::Tensor& t) {
  int64_t width = 1;
  for (int64_t d = 1; d < t.dim(); ++d) width *= t.size(d);
  NcclChannel::Counts counts;
  for (int64_t n : rows) counts.push_back(n * width);
  return counts;
}

int64_t total(const Rows& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

class NcclComm final : public DeviceComm {
 public:
  NcclComm(std::unique_ptr<comm::Comm> host, NcclChannel& channel, FlightRecorder& log)
      : host_(std::move(host)), channel_(channel), log_(log) {
    PAL_ASSERT(host_->rank() == channel_.rank() && host_->size() == channel_.size(),
               "MPI and NCCL number the ranks alike");
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  bool enqueues() const override { return true; }
  void barrier() override { host_->barrier(); }

  void all_reduce(at::Tensor t, comm::ReduceOp op) override {
    if (t.is_cpu()) return host_->all_reduce(t, op);
    enqueue("all_reduce", {t}, Then::wait,
            [&] { channel_.all_reduce(t.data_ptr(), t.data_ptr(), t.numel(), nccl_type(t), nccl_op(op)); });
  }
  void begin_all_reduce(at::Tensor t) override {
    if (t.is_cpu()) return host_->all_reduce(t, comm::ReduceOp::sum);
    enqueue("all_reduce", {t}, Then::return_now, [&] {
      if (spans_.size() == begun_) spans_.emplace_back();
      Span& span = spans_[begun_++];
      const c10::cuda::CUDAStream ours = c10::cuda::getStreamFromExternal(channel_.stream(), t.device().index());
      span.begin.record(ours);
      if (t.scalar_type() == at::kBFloat16) {
        sum_in_fp32(t, ours);
      } else {
        channel_.all_reduce(t.data_ptr(), t.data_ptr(), t.numel(), nccl_type(t));
      }
      span.end.record(ours);
    });
  }
  void join() override {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(channel_.device()));
    const c10::cuda::CUDAStream user = c10::cuda::getCurrentCUDAStream();
    if (begun_ > 0) joined_.record(user);
    channel_.before(user.stream());
  }
  Overlap overlap() override {
    Overlap out;
    if (begun_ == 0) return out;
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(channel_.device()));
    const Span& last = spans_[begun_ - 1];
    last.end.synchronize();
    joined_.synchronize();
    for (size_t k = 0; k < begun_; ++k) out.seconds += 1e-3 * spans_[k].begin.elapsed_time(spans_[k].end);
    out.waited = std::max(0.0, 1e-3 * joined_.elapsed_time(last.end));
    begun_ = 0;
    return out;
  }
  void broadcast(at::Tensor t, int root) override {
    if (t.is_cpu()) return host_->broadcast(t, root);
    enqueue("broadcast", {t}, Then::wait, [&] { channel_.broadcast(t.data_ptr(), t.numel(), nccl_type(t), root); });
  }
  at::Tensor all_gather(const at::Tensor& t) override {
    return all_gather_v(t, Rows(static_cast<size_t>(size()), t.size(0)));
  }
  at::Tensor all_gather_v(const at::Tensor& t, const Rows& counts) override {
    if (t.is_cpu()) return host_->all_gather_v(t, counts);
    check_rows(t, counts);
    const at::Tensor out = rows_like(t, total(counts));
    enqueue("all_gather_v", {t, out}, Then::wait,
            [&] { channel_.all_gather(t.data_ptr(), out.data_ptr(), elements(counts, t), nccl_type(t)); });
    return out;
  }
  at::Tensor gather_v(const at::Tensor& t, const Rows& counts, int root) override {
    if (t.is_cpu()) return host_->gather_v(t, counts, root);
    check_rows(t, counts);
    const at::Tensor out = rows_like(t, rank() == root ? total(counts) : 0);
    enqueue("gather_v", {t, out}, Then::wait,
            [&] { channel_.gather(t.data_ptr(), out.data_ptr(), elements(counts, t), nccl_type(t), root); });
    return rank() == root ? out : at::Tensor();
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const Rows& counts) override {
    if (t.is_cpu()) return host_->reduce_scatter(t, counts);
    PAL_ASSERT(static_cast<int>(counts.size()) == size() && total(counts) == t.size(0),
               "counts add up to the rows given");
    const at::Tensor out = rows_like(t, counts[static_cast<size_t>(rank())]);
    enqueue("reduce_scatter", {t, out}, Then::wait,
            [&] { channel_.reduce_scatter(t.data_ptr(), out.data_ptr(), elements(counts, t), nccl_type(t)); });
    return out;
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const Rows& send, const Rows& receive) override {
    if (t.is_cpu()) return host_->all_to_all_v(t, send, receive);
    PAL_ASSERT(static_cast<int>(send.size()) == size() && total(send) == t.size(0),
               "send counts add up to the rows given");
    const at::Tensor out = rows_like(t, total(receive));
    enqueue("all_to_all_v", {t, out}, Then::wait, [&] {
      channel_.all_to_all(t.data_ptr(), elements(send, t), out.data_ptr(), elements(receive, t), nccl_type(t));
    });
    return out;
  }

 private:
  enum class Then { wait, return_now };  // whether the caller's stream waits for the result

  // NCCL would round to bfloat16 at every hop. So each rank gets its slice of all ranks' numbers, adds them in fp32,
  // and sends the rounded sums to all, on the channel's stream. Memory that is allocated here belongs to that stream.
  void sum_in_fp32(const at::Tensor& t, c10::cuda::CUDAStream ours) {
    const c10::cuda::CUDAStreamGuard guard(ours);
    const Rows begin = comm::rank_slices(t.numel(), size());
    NcclChannel::Counts slices;
    for (int r = 0; r < size(); ++r)
      slices.push_back(begin[static_cast<size_t>(r) + 1] - begin[static_cast<size_t>(r)]);
    const int64_t own = slices[static_cast<size_t>(rank())];
    const at::Tensor received = at::empty({size(), own}, t.options());
    channel_.all_to_all(t.data_ptr(), slices, received.data_ptr(), NcclChannel::Counts(slices.size(), own),
                        NcclType::bfloat16);
    const at::Tensor sums = received.to(at::kFloat).sum(0).to(at::kBFloat16);
    channel_.all_gather(sums.data_ptr(), t.data_ptr(), slices, NcclType::bfloat16);
  }

  void check_rows(const at::Tensor& t, const Rows& counts) const {
    PAL_ASSERT(static_cast<int>(counts.size()) == size() && counts[static_cast<size_t>(rank())] == t.size(0),
               "counts has the rows of every rank");
  }

  template <class F>
  void enqueue(const char* kind, const std::vector<at::Tensor>& used, Then then, const F& launch) {
    for (const at::Tensor& t : used) {
      PAL_ASSERT(t.is_contiguous() && t.is_cuda() && t.device().index() == channel_.device(),
                 "NCCL carries contiguous tensors of its own device");
    }
    const c10::cuda::CUDAGuard guard(used[0].device());
    const cudaStream_t user = c10::cuda::getCurrentCUDAStream().stream();
    log_.begin(kind, used[0].sizes());
    channel_.after(user);
    launch();
    if (then == Then::wait) channel_.before(user);
    log_.end();
  }

  // Of one begin_all_reduce, on the channel's stream.
  struct Span {
    c10::cuda::CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};
  };

  std::unique_ptr<comm::Comm> host_;
  NcclChannel& channel_;
  FlightRecorder& log_;
  std::vector<Span> spans_;  // made once, then used again
  size_t begun_ = 0;         // spans since the last overlap()
  c10::cuda::CUDAEvent joined_{cudaEventDefault};
};

class NcclChannels final : public DeviceChannels {
 public:
  NcclChannels(int device, double start_seconds, FlightRecorder& log,
               std::function<void(const std::string&)> on_failure)
      : log_(log) {
    NcclOptions options;
    options.start_seconds = start_seconds;
    options.on_failure = std::move(on_failure);
    world_ = std::make_unique<NcclChannel>(MPI_COMM_WORLD, device, options);
    node_ = world_->split_node();
    log_.watch([this] { return world_->oldest_waiting(); });
  }
  ~NcclChannels() override { log_.watch({}); }
  void close() override {
    node_->close();
    world_->close();
  }
  void abort() override {
    node_->abort();
    world_->abort();
  }
  std::unique_ptr<DeviceComm> carry(std::unique_ptr<comm::Comm> host, Reach reach) override {
    return std::make_unique<NcclComm>(std::move(host), reach == Reach::world ? *world_ : *node_,
                                      reach == Reach::world ? log_ : node_log_);
  }

 private:
  FlightRecorder& log_;
  FlightRecorder node_log_{"node device"};  // not among World's recorders: its numbers differ from host to host
  std::unique_ptr<NcclChannel> world_, node_;
};

}  // namespace

std::unique_ptr<DeviceChannels> make_device_channels(int device, double start_seconds, FlightRecorder& log,
                                                     std::function<void(const std::string&)> on_failure) {
  return std::make_unique<NcclChannels>(device, start_seconds, log, std::move(on_failure));
}

#endif

}  // namespace pal::dist
