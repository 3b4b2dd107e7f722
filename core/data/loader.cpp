// loader: the worker threads, the ring of steps, and the views of evaluation.
#include "core/data/loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/data/tile.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

// The first error, in the order of the tiles, whichever thread met it first.
struct FirstError {
  std::exception_ptr error;
  int64_t tile = 0;

  void keep(std::exception_ptr e, int64_t t) {
    if (!error || t < tile) {
      error = e;
      tile = t;
    }
  }
};

int64_t tiles_of(int64_t rows) { return (rows + Tile::kSamples - 1) / Tile::kSamples; }

// A step on its way. Its tiles are taken in order by any worker; it is ready when all are done.
struct Slot {
  LoadedStep loaded;
  std::vector<int64_t> local;  // this rank's samples
  int64_t tiles = 0, taken = 0, done = 0;
  FirstError error;
};

}  // namespace

// Who waits for what: workers wait on `work` for an untaken tile or for room to open another step; next() waits on
// `ready` for the oldest step. Everything below is guarded by `mutex`, except what a worker does with its own tile: tiles
// of a step write disjoint rows, and the step is read only after all of them are done.
struct Loader::State {
  std::shared_ptr<const Dataset> data;
  LoaderOptions options;
  std::mutex mutex;
  std::condition_variable work, ready;
  std::vector<std::unique_ptr<Slot>> ring;  // step s at s % depth; null until it is planned
  int64_t next_out = 0;                     // the step that next() hands out
  int64_t next_open = 0;                    // the first step that no worker has begun to plan
  int64_t until = 0;                        // steps below may be opened, with these draws
  std::shared_ptr<const EdgeDraw> edges;
  bool stop = false;
  std::vector<std::thread> workers;

  std::unique_ptr<Slot>& slot(int64_t step) { return ring[step % options.depth]; }
  bool can_open() const { return next_open < until && next_open < next_out + options.depth; }

  Slot* with_untaken_tile() {
    for (int64_t s = next_out; s < next_open; ++s) {
      Slot* candidate = slot(s).get();
      if (candidate && candidate->taken < candidate->tiles) return candidate;
    }
    return nullptr;
  }

  std::unique_ptr<Slot> plan(int64_t step, const EdgeDraw* draws) const {
    auto s = std::make_unique<Slot>();
    s->loaded.step = step;
    s->loaded.samples = batch_samples(options.plan, step);
    if (!options.subset.empty()) {
      for (int64_t& sample : s->loaded.samples) sample = options.subset[sample];
    }
    if (draws) draws->add_to(s->loaded.samples, options.edge_samples, options.plan.seed, step);
    s->loaded.rank_begin = rank_slices(static_cast<int64_t>(s->loaded.samples.size()), options.ranks);
    const auto first = s->loaded.samples.begin();
    s->local.assign(first + s->loaded.rank_begin[options.rank], first + s->loaded.rank_begin[options.rank + 1]);
    const auto rows = static_cast<int64_t>(s->local.size());
    s->loaded.images = empty_images(rows * static_cast<int64_t>(options.views.size()), options.augment, options.dtype);
    s->tiles = tiles_of(rows);
    return s;
  }

  void open_next(std::unique_lock<std::mutex>& lock) {
    const int64_t step = next_open++;
    const std::shared_ptr<const EdgeDraw> draws = edges;
    lock.unlock();
    std::unique_ptr<Slot> planned;
    std::exception_ptr error;
    try {
      planned = plan(step, draws.get());
    } catch (...) {
      planned = std::make_unique<Slot>();
      error = std::current_exception();
    }
    lock.lock();
    if (error) planned->error.keep(error, 0);
    slot(step) = std::move(planned);
    work.notify_all();
    ready.notify_one();  // a rank without rows, or an error: there is no tile to wait for
  }

  void render_tile(Slot& s, Tile& tile, std::unique_lock<std::mutex>& lock) {
    const int64_t t = s.taken++;
    lock.unlock();
    std::exception_ptr error;
    try {
      const int64_t begin = t * Tile::kSamples;
      const int64_t count = std::min(Tile::kSamples, static_cast<int64_t>(s.local.size()) - begin);
      kernels::AugmentOptions augment = options.augment;
      augment.step = static_cast<uint64_t>(s.loaded.step);
      tile.augment(s.loaded.images, s.local, begin, count, options.views, augment);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) s.error.keep(error, t);
    if (++s.done == s.tiles) ready.notify_one();
  }

  void run_worker() {
    Tile tile(*data);
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || with_untaken_tile() || can_open(); });
      if (stop) return;
      if (Slot* s = with_untaken_tile()) {
        render_tile(*s, tile, lock);
      } else {
        open_next(lock);
      }
    }
  }

  void join() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& w : workers) w.join();
  }
};

Loader::Loader(std::shared_ptr<const Dataset> data, LoaderOptions options) : state_(std::make_unique<State>()) {
  PAL_ASSERT(options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks, "the loader's rank is one of its ranks");
  PAL_ASSERT(!options.views.empty(), "the loader makes at least one view");
  PAL_ASSERT(options.subset.empty() || static_cast<int64_t>(options.subset.size()) == options.plan.samples,
             "the plan counts the samples of the subset");
  PAL_CHECK(options.threads >= 1, "data.threads", options.threads, "give at least 1");
  PAL_CHECK(options.depth >= 1, "data.prefetch", options.depth, "give at least 1");
  check_encoding(*data);
  State& s = *state_;
  s.data = std::move(data);
  s.options = std::move(options);
  s.ring.resize(s.options.depth);
  s.next_out = s.next_open = s.options.first_step;
  s.until = std::max(s.options.first_step, s.options.planned_until);
  try {
    for (int i = 0; i < s.options.threads; ++i) s.workers.emplace_back([&s] { s.run_worker(); });
  } catch (...) {
    s.join();
    throw;
  }
}

Loader::~Loader() { state_->join(); }

void Loader::plan_on(int64_t until, std::shared_ptr<const EdgeDraw> edges) {
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
  std::unique_ptr<Slot>& slot = s.slot(s.next_out);
  s.ready.wait(lock, [&] { return slot && slot->done == slot->tiles; });
  if (slot->error.error) std::rethrow_exception(slot->error.error);
  LoadedStep loaded = std::move(slot->loaded);
  slot.reset();
  ++s.next_out;
  s.work.notify_all();
  return loaded;
}

at::Tensor load_centre_views(const Dataset& data, const std::vector<int64_t>& samples,
                             const kernels::AugmentOptions& augment, at::ScalarType dtype, int threads) {
  check_encoding(data);
  const auto rows = static_cast<int64_t>(samples.size());
  at::Tensor images = empty_images(rows, augment, dtype);
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  FirstError error;
  const auto work = [&] {
    Tile tile(data);
    for (int64_t t = next++; t < tiles_of(rows); t = next++) {
      try {
        const int64_t begin = t * Tile::kSamples;
        tile.centre(images, samples, begin, std::min(Tile::kSamples, rows - begin), augment);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error.keep(std::current_exception(), t);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < std::min<int64_t>(threads, tiles_of(rows)); ++i) helpers.emplace_back(work);
    work();
  }
  if (error.error) std::rethrow_exception(error.error);
  return images;
}

}  // namespace pal
