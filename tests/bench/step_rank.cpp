// step_rank: our side of the step benchmark: the parts of a training step without loader and files, or the trainer.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/comm/comm.h"
#include "core/comm/rank_slices.h"
#include "core/config/config.h"
#include "core/graph/store.h"
#include "core/io/safetensors.h"
#include "core/loss/criterion.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/optim/optimizer.h"
#include "core/record/checkpoint.h"
#include "dist/comm/world.h"
#include "dist/train/grad_sync.h"
#include "dist/train/trainer.h"
#include "launch/process/machine.h"
#include "tests/bench/bench.h"
#include "tests/core/spec_of.h"

namespace pal::bench {
namespace {

class Bench {
 public:
  virtual ~Bench() = default;
  virtual double step() = 0;  // the global loss
  virtual void report(nlohmann::json& line) const = 0;
};

class StepBench final : public Bench {
 public:
  StepBench(const std::string& input, at::ScalarType dtype, dist::World& world) : world_(world) {
    io::SafetensorsFile file = io::read_safetensors(input);
    lr_ = std::stod(file.metadata.at("lr"));
    for (int64_t k = 0;; ++k) {
      const std::string name = "batch." + std::to_string(k) + ".view.";
      if (!file.tensors.contains(name + "0")) break;
      if (k == 0) plan(file.tensors.at(name + "0").size(0));
      std::vector<at::Tensor> views;
      for (const char* view : {"0", "1"}) {
        auto node = file.tensors.extract(name + view);
        views.push_back(node.mapped().narrow(0, batch_.begin, batch_.local_positions()).to(dtype).contiguous());
      }
      batches_.push_back(std::move(views));
    }
    model::ModelSpec spec = bench_step_model(std::stoll(file.metadata.at("projector")));
    spec.dtype = dtype;
    encoder_ = model::make_encoder(spec, world.compute());
    record::restore(model::model_state(*encoder_), file.tensors, input);
    encoder_->train();
    grads_ = std::make_unique<dist::GradSync>(model::trainable(*encoder_), world.gradients());
    optim::OptimSpec optim;
    optim.kind = optim::OptimizerKind::sgd;
    optim.momentum = std::stod(file.metadata.at("momentum"));
    optim.weight_decay = std::stod(file.metadata.at("weight_decay"));
    optimizer_ = optim::make_optimizer(optim, model::trainable(*encoder_));
    criterion_ = loss::make_criterion(spec_of({"loss.kind=vicreg", "loss.moments=per_view"}).loss);
  }

  // The parts of Trainer::step, with one forward per view as in the official code. Returns the global loss.
  double step() override {
    std::vector<at::Tensor> z;
    for (const at::Tensor& view : batches_[next_++ % batches_.size()]) z.push_back(encoder_->forward(view));
    const at::Tensor all = at::cat(z);
    comm::CountingComm counted(world_.compute());
    const loss::LossResult loss = criterion_(all.detach(), batch_, counted);
    loss_bytes_ = counted.bytes();
    grads_->begin();
    grads_->release();
    all.backward(loss.dz);
    grads_->sum();
    model::commit_batch_norm(*encoder_);
    optimizer_->step(lr_);
    return loss.value;
  }
  void report(nlohmann::json& line) const override {
    line["loss_bytes"] = loss_bytes_;
    line["sync_hidden"] = grads_->time().hidden();
    line["sync_ms"] = 1000 * grads_->time().seconds;
  }

 private:
  void plan(int64_t samples) {
    batch_.rank_begin = comm::rank_slices(samples, world_.size());
    batch_.begin = batch_.rank_begin[world_.rank()];
    batch_.end = batch_.rank_begin[world_.rank() + 1];
    for (int64_t s = 0; s < samples; ++s) batch_.samples.push_back(s);
    batch_.graph = graph::build_batch_graph(graph::GraphStore(samples), graph::GraphKind::ssl, 0, batch_.samples, 2);
  }

  dist::World& world_;
  double lr_ = 0;
  std::vector<std::vector<at::Tensor>> batches_;  // [batch][view]: this rank's rows
  loss::Batch batch_;
  std::shared_ptr<model::Encoder> encoder_;
  std::unique_ptr<dist::GradSync> grads_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  loss::Criterion criterion_;
  size_t next_ = 0;
  int64_t loss_bytes_ = 0;
};

// The trainer itself on configs/quickstart.yaml, with its loader.
class QuickstartBench final : public Bench {
 public:
  QuickstartBench(const std::string& folder, dist::World& world)
      : trainer_(
            setup::make_run_spec(config::Config::load(
                "configs/quickstart.yaml", {"data.train=" + folder + "/set.h5", "train.threads=1",
                                            "train.steps=1000000", "log.every=1000000", "checkpoint.every=1000000"})),
            world, folder + "/run", dist::Resume::never) {}
  double step() override { return trainer_.step().loss; }
  void report(nlohmann::json&) const override {}

 private:
  dist::Trainer trainer_;
};

}  // namespace

void bench_step_rank(const std::string& folder, const std::string& dtype, dist::World& world) {
  at::set_num_threads(1);
  launch::keep_freed_memory();
  const std::string input = folder + "/input.safetensors";
  std::unique_ptr<Bench> bench;
  if (std::filesystem::exists(input)) {
    bench = std::make_unique<StepBench>(input, dtype == "float64" ? at::kDouble : at::kFloat, world);
  } else {
    bench = std::make_unique<QuickstartBench>(folder, world);
  }
  const auto say = [&](const nlohmann::json& line) {
    if (world.rank() == 0) std::cout << line.dump() << std::endl;
  };
  say({{"ready", true}});
  std::ifstream go(folder + "/go." + std::to_string(world.rank()));
  int steps = 0;
  while (go >> steps && steps > 0) {
    std::vector<double> losses, ms;
    for (int k = 0; k < steps; ++k) {
      world.compute().barrier();
      const auto start = std::chrono::steady_clock::now();
      losses.push_back(bench->step());
      world.compute().barrier();
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    nlohmann::json line = {{"losses", losses}, {"ms", ms}};
    bench->report(line);
    say(line);
  }
  say({{"done", true}, {"peak_mb", launch::peak_memory_mb()}});
}

}  // namespace pal::bench
