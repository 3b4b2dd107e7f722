// loader: the threads and the ring of steps.
#include "core/data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/comm/rank_slices.h"
#include "core/data/loader/pending_step.h"
#include "kernels/base/error.h"

namespace pal::data {

// Workers wait on `work` for a tile to render, a tile to read, or room to open another step. Readers wait on it for a
// tile to read and room for its bytes. next() waits on `ready` for the oldest step. `mutex` guards everything below,
// except what a thread does with its own tile: tiles of a step write disjoint rows, and the step is read only after all
// are done.
struct Loader::State {
  std::shared_ptr<const Dataset> data;
  LoaderOptions options;
  std::unique_ptr<ImagePool> large, small;
  int64_t read_ahead_limit = 0, bound = 0;  // bytes: of images that wait for a worker; of everything
  std::mutex mutex;
  std::condition_variable work, ready;
  std::vector<std::unique_ptr<PendingStep>> ring;  // step s at s % depth; null until it is planned
  int64_t next_out = 0;                            // the step that next() hands out
  int64_t next_open = 0;                           // the first step that no worker has begun to plan
  int64_t until = 0;                               // steps below may be opened, with these draws
  int64_t read_ahead = 0, most_read_ahead = 0;     // bytes
  std::shared_ptr<const graph::EdgeDraw> edges;
  bool stop = false;
  double waited = 0;
  RenderTimes cpu;
  int64_t left_to_libjpeg = 0;
  std::vector<std::thread> threads;

  std::unique_ptr<PendingStep>& slot(int64_t step) { return ring[step % options.depth]; }
  bool can_open() const { return next_open < until && next_open < next_out + options.depth; }

  // The oldest step that `wanted` holds for.
  template <class F>
  PendingStep* oldest(const F& wanted) {
    for (int64_t s = next_out; s < next_open; ++s) {
      PendingStep* candidate = slot(s).get();
      if (candidate && wanted(*candidate)) return candidate;
    }
    return nullptr;
  }
  PendingStep* to_render() {
    return oldest([](const PendingStep& s) { return !s.readable.empty(); });
  }
  PendingStep* to_read() {
    return oldest([](const PendingStep& s) { return s.unread < s.tiles; });
  }

  // Rows that a rank may get in a step.
  int64_t largest_step() const {
    const int64_t steps = options.plan.steps_per_epoch();
    const int64_t batch = (options.plan.samples + steps - 1) / steps + options.edge_samples;
    return (batch + options.ranks - 1) / options.ranks;
  }

  void make_room() {
    const int64_t rows = largest_step();
    const ViewSet& views = options.views;
    const kernels::AugmentOptions little = small_options();
    const int64_t step_bytes =
        options.render == Render::device
            ? part_room(rows)
            : images_bytes(rows * views.large_views(), views.large, options.dtype) +
                  (views.small_views > 0 ? images_bytes(rows * views.small_views, little, options.dtype) : 0);
    const int64_t memory = options.memory_mb << 20;
    read_ahead_limit = memory / 8;
    const int64_t fits = (memory - read_ahead_limit) / std::max<int64_t>(step_bytes, 1);
    PAL_CHECK(fits >= 2, "data.memory_mb is {}, which holds fewer than two steps", options.memory_mb,
              "give at least " + std::to_string((2 * step_bytes * 8 / 7 >> 20) + 1) + ", or use more ranks");
    options.depth = static_cast<int>(std::min<int64_t>(options.depth, fits - 1));
    ring.resize(options.depth);
    bound = (options.depth + 1) * step_bytes + read_ahead_limit;
    if (options.render == Render::device) return;
    const auto keep = static_cast<size_t>(options.depth) + 1;
    large = std::make_unique<ImagePool>(keep, rows * views.large_views(), views.large, options.dtype);
    if (views.small_views > 0)
      small = std::make_unique<ImagePool>(keep, rows * views.small_views, little, options.dtype);
  }

  kernels::AugmentOptions small_options() const {
    kernels::AugmentOptions little = options.views.large;
    little.size = options.views.small_size;
    return little;
  }

  // For the parts of a step: raw images as they are; a JPEG file's part is reduced until it would be less than twice as
  // high or as wide as the view.
  int64_t part_room(int64_t rows) const {
    const std::vector<int32_t> shape = data->shape();
    const int64_t side = 2 * options.views.large.size;
    return rows * (data->encoding() == Encoding::raw ? int64_t{shape[0]} * shape[1] * shape[2] : 3 * side * side);
  }

  // Images that the device decodes are not in a step's buffer. The few that libjpeg decodes fit, or stay in vectors of
  // their own.
  int64_t buffer_room(int64_t rows) const { return options.decoder ? part_room(rows) / 8 : part_room(rows); }

  // Announces to the disk this rank's share of the samples that the steps one window later need.
  void ask_ahead(int64_t step) const {
    const std::vector<SampleRange> ranges = pal::data::read_ahead(options.plan, step);
    for (size_t k = options.local_rank; k < ranges.size(); k += options.local_ranks) {
      const auto [begin, end] = ranges[k];
      options.subset.empty() ? data->will_read(begin, end)
                             : data->will_read(options.subset[begin], options.subset[end - 1] + 1);
    }
  }

  std::unique_ptr<PendingStep> plan(int64_t step, const graph::EdgeDraw* draws) const {
    auto s = std::make_unique<PendingStep>();
    s->loaded.step = step;
    ask_ahead(step);
    s->loaded.samples = batch_samples(options.plan, options.subset, step);
    const double share = static_cast<double>(s->loaded.samples.size()) / static_cast<double>(options.plan.samples);
    if (draws) draws->add_to(s->loaded.samples, options.edge_samples, options.plan.seed, step);
    for (const int64_t sample : s->loaded.samples) {
      s->loaded.weights.push_back(1 / (draws ? draws->inclusion(sample, options.edge_samples, share) : share));
    }
    s->loaded.rank_begin = comm::rank_slices(static_cast<int64_t>(s->loaded.samples.size()), options.ranks);
    const auto first = s->loaded.samples.begin();
    s->local.assign(first + s->loaded.rank_begin[options.rank], first + s->loaded.rank_begin[options.rank + 1]);
    const auto rows = static_cast<int64_t>(s->local.size());
    s->bytes.resize(s->local.size());
    s->decoder = options.decoder.get();
    if (large)
      s->loaded.images = large->take(rows * options.views.large_views());
    else
      s->parts = std::make_unique<DeviceStep>(rows, static_cast<int64_t>(options.views.policies.size()),
                                              buffer_room(rows), options.device);
    if (small) s->loaded.small_images = small->take(rows * options.views.small_views);
    s->tile_samples = Renderer::samples_at_once(*data);
    s->tiles = (rows + s->tile_samples - 1) / s->tile_samples;
    return s;
  }

  void open_next(std::unique_lock<std::mutex>& lock) {
    const int64_t step = next_open++;
    const std::shared_ptr<const graph::EdgeDraw> draws = edges;
    lock.unlock();
    std::unique_ptr<PendingStep> planned;
    std::exception_ptr error;
    try {
      planned = plan(step, draws.get());
    } catch (...) {
      planned = std::make_unique<PendingStep>();
      error = std::current_exception();
    }
    lock.lock();
    if (error) planned->error.keep(error, 0);
    slot(step) = std::move(planned);
    work.notify_all();
    ready.notify_one();  // a rank without rows, or an error: no tile is left
  }

  // Runs f without the lock; its error, if any, is the tile's.
  template <class F>
  bool without_lock(std::unique_lock<std::mutex>& lock, PendingStep& s, int64_t tile, const F& f) {
    lock.unlock();
    std::exception_ptr error;
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) s.error.keep(error, tile);
    return !error;
  }

  void finish(PendingStep& s) {
    if (++s.done == s.tiles) ready.notify_one();
  }

  void read_ahead_of_workers(PendingStep& s, std::unique_lock<std::mutex>& lock) {
    const int64_t tile = s.unread++;
    double seconds = 0;
    const bool good = without_lock(lock, s, tile, [&] {
      const double start = thread_seconds();
      s.read(*data, tile);
      seconds = thread_seconds() - start;
    });
    cpu.read += seconds;
    if (!good) return finish(s);
    read_ahead += s.tile_bytes(tile);
    most_read_ahead = std::max(most_read_ahead, read_ahead);
    s.readable.push_back(tile);
    work.notify_one();
  }

  void work_on(PendingStep& s, Renderer& tile, ViewSet& views, std::unique_lock<std::mutex>& lock) {
    const bool read = !s.readable.empty();
    const int64_t number = read ? s.readable.front() : s.unread++;
    if (read) {
      s.readable.pop_front();
      const bool was_full = read_ahead >= read_ahead_limit;
      read_ahead -= s.tile_bytes(number);
      if (was_full) work.notify_all();
    }
    tile.times = {};
    tile.left_to_libjpeg = 0;
    without_lock(lock, s, number, [&] {
      const double start = thread_seconds();
      if (!read) s.read(*data, number);
      tile.times.read = thread_seconds() - start;
      s.render(tile, number, views);
    });
    cpu.read += tile.times.read;
    cpu.decode += tile.times.decode;
    cpu.augment += tile.times.augment;
    left_to_libjpeg += tile.left_to_libjpeg;
    finish(s);
  }

  void run_worker() {
    Renderer tile(*data);
    ViewSet views = options.views;
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || to_render() || to_read() || can_open(); });
      if (stop) return;
      PendingStep* s = to_render();
      if (!s) s = to_read();
      s ? work_on(*s, tile, views, lock) : open_next(lock);
    }
  }

  void run_reader() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || (read_ahead < read_ahead_limit && to_read()) || can_open(); });
      if (stop) return;
      PendingStep* s = read_ahead < read_ahead_limit ? to_read() : nullptr;
      s ? read_ahead_of_workers(*s, lock) : open_next(lock);
    }
  }

  void render(PendingStep& s) const {
    const ViewSet& views = options.views;
    const at::Tensor pixels = s.parts->to_device(options.decoder.get());
    kernels::AugmentOptions large_options = views.large;
    large_options.step = static_cast<uint64_t>(s.loaded.step);
    s.loaded.images = s.parts->views(pixels, 0, views.large_views(), large_options, options.dtype, options.threads);
    if (views.small_views == 0) return;
    s.loaded.small_images =
        s.parts->views(pixels, views.large_views(), views.small_views, small_options(), options.dtype, options.threads);
  }

  void join() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& t : threads) t.join();
  }
};

Loader::Loader(std::shared_ptr<const Dataset> data, LoaderOptions options) : state_(std::make_unique<State>()) {
  PAL_ASSERT(options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks,
             "the loader's rank is one of its ranks");
  PAL_ASSERT(options.views.large_views() > 0, "the loader makes at least one view");
  PAL_ASSERT(options.subset.empty() || static_cast<int64_t>(options.subset.size()) == options.plan.samples,
             "the plan counts the samples of the subset");
  PAL_ASSERT(options.device.is_cpu() || options.render == Render::device,
             "a device that is not the CPU renders the views itself");
  PAL_ASSERT(options.render == Render::workers || data->encoding() != Encoding::features,
             "rows of features are made by the workers");
  PAL_ASSERT(!options.decoder || (options.render == Render::device && data->encoding() == Encoding::jpeg &&
                                  options.views.decode == Decode::full),
             "a device that renders decodes JPEG files, in full size");
  PAL_CHECK(options.threads >= 1, "data.threads is {}", options.threads, "give at least 1");
  PAL_CHECK(options.depth >= 1, "data.prefetch is {}", options.depth, "give at least 1");
  State& s = *state_;
  s.data = std::move(data);
  s.options = std::move(options);
  s.make_room();
  s.next_out = s.next_open = s.options.first_step;
  s.until = std::max(s.options.first_step, s.options.planned_until);
  try {
    for (int i = 0; i < s.options.threads; ++i) s.threads.emplace_back([&s] { s.run_worker(); });
    for (int i = 0; i < s.options.readers; ++i) s.threads.emplace_back([&s] { s.run_reader(); });
  } catch (...) {
    s.join();
    throw;
  }
}

Loader::~Loader() { state_->join(); }

void Loader::plan_on(int64_t until, std::shared_ptr<const graph::EdgeDraw> edges) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    PAL_ASSERT(s.next_out == s.until && until >= s.until, "the loader plans on from where its plan ended");
    s.until = until;
    s.edges = std::move(edges);
  }
  s.work.notify_all();
}

LoadedStep Loader::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  PAL_ASSERT(s.next_out < s.until, "next() is called once per step that was planned");
  std::unique_ptr<PendingStep>& slot = s.slot(s.next_out);
  const auto start = std::chrono::steady_clock::now();
  s.ready.wait(lock, [&] { return slot && slot->ready(); });
  s.waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (slot->error.error) std::rethrow_exception(slot->error.error);
  const std::unique_ptr<PendingStep> taken = std::move(slot);
  ++s.next_out;
  lock.unlock();
  s.work.notify_all();
  if (taken->parts) s.render(*taken);
  return std::move(taken->loaded);
}

LoaderReport Loader::report() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return {s.options.depth, megabytes(s.bound), megabytes(s.most_read_ahead), s.waited, s.cpu, s.left_to_libjpeg};
}

}  // namespace pal::data
