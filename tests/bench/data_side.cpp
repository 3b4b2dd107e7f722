// data_side: our side of `pal bench data`: whole turns of the loader, its parts one by one, and slow disks.
#include <ATen/ops/empty.h>
#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/data/loader/loader.h"
#include "core/io/file_handle.h"
#include "core/io/safetensors.h"
#include "kernels/base/isa.h"
#include "launch/process/machine.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double process_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The two views of VICReg, as in configs/imagenet-vicreg.yaml.
data::ViewSet vicreg_views(int size) {
  data::ViewSet views;
  views.policies.resize(2);
  views.policies[0].blur = 1.0f;
  views.policies[1].blur = 0.1f;
  views.policies[1].solarize = 0.2f;
  views.large.size = size;
  const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
  std::copy(mean, mean + 3, views.large.mean);
  std::copy(std, std + 3, views.large.std);
  return views;
}

// A data set on a disk of a given speed: reads are serialized, each takes as long as its bytes need.
class SlowDisk final : public data::Dataset {
 public:
  SlowDisk(std::shared_ptr<const data::Dataset> inner, double bytes_per_second)
      : inner_(std::move(inner)), speed_(bytes_per_second) {}
  int64_t size() const override { return inner_->size(); }
  data::Encoding encoding() const override { return inner_->encoding(); }
  std::vector<int32_t> shape() const override { return inner_->shape(); }
  const std::vector<int64_t>& labels() const override { return inner_->labels(); }
  const std::vector<std::string>& classes() const override { return inner_->classes(); }
  uint64_t fingerprint() const override { return inner_->fingerprint(); }
  kernels::ImageView image(int64_t sample, const std::vector<uint8_t>& bytes) const override {
    return inner_->image(sample, bytes);
  }
  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    inner_->read(sample, bytes);
    const std::lock_guard lock(mutex_);
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes.size()) / speed_));
  }

 private:
  std::shared_ptr<const data::Dataset> inner_;
  double speed_;
  mutable std::mutex mutex_;
};

// Every image once.
json load_all(const std::shared_ptr<const data::Dataset>& data, const DataBenchOptions& o, int threads, int readers,
              int64_t step = 0) {
  data::LoaderOptions load;
  load.plan = {data->size(), o.batch, 1};
  load.views = vicreg_views(o.size);
  load.threads = threads;
  load.readers = readers;
  const int64_t steps = load.plan.steps_per_epoch();
  load.first_step = step * steps;
  load.planned_until = load.first_step + steps;
  const double cpu = process_seconds(), start = wall_seconds();
  int64_t images = 0;
  data::Loader loader(data, load);
  for (int64_t s = 0; s < steps; ++s) images += static_cast<int64_t>(loader.next().samples.size());
  return {{"images", images},
          {"seconds", wall_seconds() - start},
          {"cpu_seconds", process_seconds() - cpu},
          {"read_ahead_mb", loader.report().read_ahead_mb}};
}

// CPU time of the stages of an image on one thread. The cost of a kernel step is the difference to a view without it.
json parts(const data::Dataset& data, const DataBenchOptions& o) {
  const data::ViewSet views = vicreg_views(o.size);
  data::Renderer tile(data);
  std::vector<uint8_t> bytes;
  std::vector<float> out(3 * static_cast<size_t>(o.size) * static_cast<size_t>(o.size));
  std::vector<char> scratch;
  double read = 0, decode = 0, resize = 0, color = 0, blur = 0;
  for (int64_t s = 0; s < data.size(); ++s) {
    double at = data::thread_seconds();
    const auto lap = [&at] {
      const double before = at;
      at = data::thread_seconds();
      return at - before;
    };
    data.read(s, bytes);
    read += lap();
    const kernels::ImagePart part = tile.prepare(s, bytes, views);
    decode += lap();
    scratch.resize(static_cast<size_t>(kernels::cpu::augment_scratch_bytes({&part.pixels, 1}, views.large, {1})));
    const auto render = [&](const kernels::ViewParams& params) {
      kernels::cpu::augment_part(out.data(), part, params, views.large,
                                 {scratch.data(), static_cast<int64_t>(scratch.size())}, kernels::best_isa());
    };
    for (const kernels::ViewParams& params : tile.params()) {
      kernels::ViewParams plain;
      plain.crop = params.crop;
      plain.flip = params.flip;
      kernels::ViewParams colored = params;
      colored.blur = false;
      lap();
      render(plain);
      const double a = lap();
      render(colored);
      const double b = lap();
      render(params);
      const double c = lap();
      resize += a;
      color += b - a;
      blur += c - b;
    }
  }
  const double scale = 1000 / static_cast<double>(data.size());
  return {{"read", scale * read},   {"decode", scale * decode}, {"resize", scale * resize},
          {"color", scale * color}, {"blur", scale * blur},     {"copy", 0.0}};
}

json slow_disk(const std::shared_ptr<const data::Dataset>& data, const DataBenchOptions& o) {
  double total = 0;
  std::vector<uint8_t> bytes;
  for (int64_t s = 0; s < data->size(); ++s) {
    data->read(s, bytes);
    total += static_cast<double>(bytes.size());
  }
  const double images = static_cast<double>(data->size());
  const auto rate = [&](const std::shared_ptr<const data::Dataset>& from, int readers) {
    return images / load_all(from, o, 1, readers)["seconds"].get<double>();
  };
  const double speed = rate(data, 0) * total / images;
  const auto slow = std::make_shared<SlowDisk>(data, speed);
  std::vector<double> with, without;
  for (int t = 0; t < o.slow_turns; ++t) {  // in turns, so that other load affects both equally
    with.push_back(rate(slow, 1));
    without.push_back(rate(slow, 0));
  }
  return {
      {"mb_s", speed / 1e6}, {"disk_images_s", speed * images / total}, {"readers_1", with}, {"readers_0", without}};
}

// Cold page cache: the shard's pages are dropped before each turn; with and without read-ahead.
json cold_cache(const std::string& shard, const std::shared_ptr<const data::Dataset>& data, const DataBenchOptions& o) {
  std::vector<double> with, without;
  for (int t = 0; t < o.slow_turns; ++t) {
    for (const int readers : {1, 0}) {
      io::FileHandle::open_for_reading(shard).forget_cached();
      const json turn = load_all(data, o, o.threads, readers);
      (readers == 1 ? with : without).push_back(turn["images"].get<double>() / turn["seconds"].get<double>());
    }
  }
  return {{"readers_1", with}, {"readers_0", without}};
}

// Crop and resize only, of every sample, in [0, 1], with their boxes.
void write_views(const data::Dataset& data, const DataBenchOptions& o, const std::string& path) {
  data::ViewSet views = vicreg_views(o.size);
  for (kernels::ViewPolicy& p : views.policies) p.flip = p.jitter = p.gray = p.blur = p.solarize = 0;
  std::fill(views.large.mean, views.large.mean + 3, 0.0f);
  std::fill(views.large.std, views.large.std + 3, 1.0f);
  views.decode = data::Decode::full;
  const int64_t samples = std::min<int64_t>(data.size(), 32);
  const at::Tensor images = at::empty({2 * samples, 3, o.size, o.size}, at::kFloat);
  const at::Tensor boxes = at::empty({2 * samples, 4}, at::kLong), ids = at::empty({2 * samples}, at::kLong);
  data::Renderer tile(data);
  std::vector<uint8_t> bytes;
  for (int64_t s = 0; s < samples; ++s) {
    data.read(s, bytes);
    std::vector<float*> out;
    for (int64_t v = 0; v < 2; ++v) out.push_back(images.data_ptr<float>() + (2 * s + v) * images.stride(0));
    tile.augment(out, s, bytes, views);
    for (int64_t v = 0; v < 2; ++v) {
      const kernels::CropBox& crop = tile.params()[static_cast<size_t>(v)].crop;
      int64_t* box = boxes.data_ptr<int64_t>() + 4 * (2 * s + v);
      box[0] = crop.top, box[1] = crop.left, box[2] = crop.height, box[3] = crop.width;
      ids.data_ptr<int64_t>()[2 * s + v] = s;
    }
  }
  io::write_safetensors(path, {{"views", images}, {"boxes", boxes}, {"samples", ids}}, {});
}

}  // namespace

int bench_data_side(const DataBenchOptions& o, const std::string& folder) {
  launch::keep_freed_memory();
  const std::string shard = folder + "/shard.h5";
  const std::shared_ptr<const data::Dataset> data = data::Dataset::open(shard);
  const auto say = [](const json& line) { std::cout << line.dump() << std::endl; };
  say({{"ready", true}});
  int64_t turn = 0;
  for (std::string word; std::cin >> word && word != "end";) {
    if (word == "views") {
      std::cin >> word;
      write_views(*data, o, word);
      say({{"written", word}});
    } else if (word == "parts") {
      say(parts(*data, o));
    } else if (word == "slow") {
      say(slow_disk(data, o));
    } else if (word == "cold") {
      say(cold_cache(shard, data, o));
    } else {
      say(load_all(data, o, o.threads, 1, turn++));
    }
  }
  say({{"peak_mb", launch::peak_memory_mb()}});
  return 0;
}

}  // namespace pal::bench
