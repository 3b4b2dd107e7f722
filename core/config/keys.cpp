// keys: the one table of configuration keys. Parser, help, defaults and dump are made of it.
#include "core/config/config.h"

namespace pal::config {

const std::vector<KeySpec>& config_keys() {
  using T = KeyType;
  // A key per line, however long.
  // clang-format off
  static const std::vector<KeySpec> keys = {
      {"data.train", T::text, "", "Training shards: a .h5 file, a folder of them, or a glob."},
      {"data.stage", T::text, "", "Local folder to copy the training shards to, once per node, e.g. ${SLURM_TMPDIR}; empty: none.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"data.test", T::text, "", "Test shards, for evaluation.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"data.limit", T::integer, "0", "Train on this many samples only, drawn by the seed (0: all).", {}, 0},
      {"data.size", T::integer, "0", "Side of the augmented views in pixels (0: the images' own height).", {}, 0, 4096},
      {"data.threads", T::integer, "1", "Loader threads per rank.", {}, 1, 256, KeyEffect::none},
      {"data.readers", T::integer, "1", "Threads per rank that only read ahead, beside the loader's.", {}, 0, 256, KeyEffect::none},
      {"data.prefetch", T::integer, "3", "Steps the loader prepares ahead, if they fit into data.memory_mb.", {}, 1, 64, KeyEffect::none},
      {"data.memory_mb", T::integer, "4096", "Most memory of a rank's loader, in MB.", {}, 1, 1e9, KeyEffect::none},
      {"data.decode", T::choice, "scaled", "JPEG: decode a crop that is much larger than its view at 1/2, 1/4 or 1/8, or all of its pixels.", {"scaled", "full"}},
      {"data.decoder", T::choice, "cpu", "JPEG: by the loader's threads, or their last part by the GPU's nvJPEG, with data.decode=full.", {"cpu", "nvjpeg"}},
      {"data.shuffle", T::choice, "full", "Order of an epoch: any sample anywhere, or shuffled runs and windows, which a disk reads ahead.", {"full", "windows"}},
      {"data.window", T::integer, "16384", "Samples in a window of data.shuffle=windows; a multiple of 16.", {}, 16},

      {"augment.views", T::integer, "2", "Large views per sample, of data.size pixels.", {}, 2, 64},
      {"augment.small_views", T::integer, "0", "Small views per sample beside them (multi-crop).", {}, 0, 64},
      {"augment.small_size", T::integer, "96", "Side of the small views in pixels.", {}, 1, 4096},
      {"augment.small_crop_scale", T::real_list, "[0.05, 0.14]", "Share of the area that a crop of a small view keeps: [min, max].", {}, 0.0001, 1},
      {"augment.crop_scale", T::real_list, "[0.2, 1.0]", "Share of the area that a random crop keeps: [min, max].", {}, 0.0001, 1},
      {"augment.crop_ratio", T::real_list, "[0.75, 1.3333]", "Aspect ratio of a random crop: [min, max].", {}, 0.01, 100},
      {"augment.interpolation", T::choice, "bilinear", "Filter that resizes a crop, with antialiasing.", {"bilinear", "bicubic"}},
      {"augment.flip", T::real_list, "[0.5]", "Probability of a left-right flip, per view (the last one repeats).", {}, 0, 1},
      {"augment.jitter", T::real_list, "[0.8]", "Probability of color jitter, per view.", {}, 0, 1},
      {"augment.jitter_strength", T::real_list, "[0.4, 0.4, 0.2, 0.1]", "Brightness, contrast, saturation, hue.", {}, 0, 10},
      {"augment.gray", T::real_list, "[0.2]", "Probability of gray, per view.", {}, 0, 1},
      {"augment.blur", T::real_list, "[0.0]", "Probability of a Gaussian blur, per view.", {}, 0, 1},
      {"augment.blur_sigma", T::real_list, "[0.1, 2.0]", "Standard deviation of the blur in pixels: [min, max].", {}, 0.01, 100},
      {"augment.solarize", T::real_list, "[0.0]", "Probability of solarization, per view.", {}, 0, 1},
      {"augment.noise", T::real, "0.3", "Features: noise of a view, as a share of the columns' mean deviation.", {}, 0},
      {"augment.mean", T::real_list, "[0.485, 0.456, 0.406]", "Mean taken off each channel: three numbers, or one for all."},
      {"augment.std", T::real_list, "[0.229, 0.224, 0.225]", "Standard deviation each channel is divided by: three numbers, or one for all.", {}, 1e-6},

      {"model.backbone", T::choice, "resnet18", "Encoder.", {
#define PAL_BACKBONE(name, published) #name,
#include "core/config/backbones.def"
      }},
      {"model.init", T::text, "", "Weights the backbone begins with: a safetensors file of torchvision, timm, DINO, VICReg, solo-learn or pal export."},
      {"model.patch", T::integer, "16", "ViT: side of a patch in pixels; data.size must be a multiple of it.", {}, 1, 256},
      {"model.drop_path", T::real, "0", "ViT: stochastic depth, the rate of the last block.", {}, 0, 0.95},
      {"model.stem", T::choice, "cifar", "First layers of a ResNet: cifar (3x3, no pooling) or imagenet (7x7/2, pooling).", {"cifar", "imagenet"}},
      {"model.widths", T::integer_list, "[32, 64, 128]", "Channels of the convnet's blocks.", {}, 1, 65536},
      {"model.projector", T::integer_list, "[2048, 2048, 2048]", "Widths of the projector's layers; [] for none.", {}, 1, 1048576},
      {"model.predictor", T::integer_list, "[]", "NNCLR: widths of the predictor's layers after the projector, the last one the projector's last; [] for none.", {}, 1, 1048576},
      {"model.batch_norm", T::choice, "global", "Whose rows make the batch statistics: all ranks, the node, or each rank's own (off); with the last two results depend on the number of ranks.", {"global", "node", "off"}},

      {"graph.kind", T::choice, "ssl", "Similarity graph.", {"ssl", "supervised", "mixed", "signed", "table", "regression", "ranking", "pairs"}},
      {"graph.alpha", T::real, "0.5", "Weight of the labels in the mixed graph, (1-alpha) ssl + alpha labels.", {}, 0, 1},
      {"graph.labeled_fraction", T::real, "1.0", "Share of the training labels that the graph knows, drawn by the seed.", {}, 0, 1},
      {"graph.label_noise", T::real, "0", "Share of the known labels that is drawn anew from the classes.", {}, 0, 1},
      {"graph.table", T::text, "zero-one", "Table graph: losses between classes, zero-one or a CSV file of C lines of C."},
      {"graph.targets", T::text, "", "Regression and ranking graphs: a CSV file with a line of numbers per sample."},
      {"graph.pairs", T::text, "", "Weighted pairs that are added to the graph: CSV i,j,weight or an HDF5 CSR group."},
      {"graph.pair_noise", T::real, "0", "Share of these pairs whose weight changes its sign.", {}, 0, 1},
      {"graph.missing", T::real, "0", "Probability that the relation of two samples is missing in the graph.", {}, 0, 1},
      {"graph.deduction", T::choice, "on", "What follows from relations: all (same and same is same), once (samples answered to be like one and the same are alike, no more) or off (nothing); once and off are for answers that may be wrong.", {"on", "once", "off"}},
      {"graph.edge_share", T::real, "0.25", "Share of a batch drawn in pairs from samples known to be alike, where some are and some are not; the rest come once per epoch.", {}, 0, 0.9},
      {"graph.self_loops", T::choice, "auto", "Whether a row is related to itself: auto is on for vic2, scl and sampled_vic2, off for others.", {"auto", "on", "off"}},

      {"loss.kind", T::choice, "vicreg", "Loss on the graph; mse and cross_entropy are baselines on the labels (pal help losses).", {
#define PAL_LOSS(name, cost, target) #name,
#include "core/config/losses.def"
      }},
      {"loss.invariance", T::real, "25", "VICReg: weight of the invariance term.", {}, 0},
      {"loss.variance", T::real, "25", "VICReg: weight of the variance term.", {}, 0},
      {"loss.covariance", T::real, "1", "VICReg: weight of the covariance term.", {}, 0},
      {"loss.epsilon", T::real, "1e-4", "VICReg: added to the variance under the root.", {}, 0},
      {"loss.moments", T::choice, "per_view", "VICReg: statistics of each view (the official code) or of all rows (the paper).", {"per_view", "pooled"}},
      {"loss.margin", T::real, "0", "VICReg: distance that rows known to differ keep, |w| relu(margin - distance)^2 (0: the root of twice the width).", {}, 0},
      {"loss.temperature", T::real, "0.1", "SimCLR, NNCLR: temperature of the softmax.", {}, 1e-3},
      {"loss.barlow", T::choice, "cross", "BarlowTwins: correlation across pairs of views (the textbook form) or over all edges of the graph.", {"cross", "graph"}},
      {"loss.lambda", T::real, "0.005", "BarlowTwins: weight of the correlations off the diagonal.", {}, 0},
      {"loss.scale", T::real, "1", "BarlowTwins: factor of the loss.", {}, 0},
      {"loss.queue", T::integer, "65536", "NNCLR: embeddings kept to choose neighbors from (0: the other samples of the batch).", {}, 0, 1 << 26},
      {"loss.neighbors", T::integer, "1", "NNCLR: one of so many nearest ones, drawn, stands for a row (0: the row itself, plain SSL).", {}, 0, 64},
      {"loss.pairs", T::integer, "0", "Sampled VIC2: pairs of rows drawn against collapse in a step (0: all pairs of the batch).", {}, 0, 1 << 30},
      {"loss.draw", T::choice, "any", "Sampled VIC2: pairs of any rows, or between two random halves of the rows.", {"any", "halves"}},
      {"loss.form", T::choice, "unbiased", "Sampled VIC2: unbiased for VIC2, or the form printed in the paper.", {"unbiased", "printed"}},
      {"loss.reduction", T::choice, "mean", "mean trains; sum is for theory.", {"mean", "sum"}},

      {"oracle.sampler", T::choice, "none", "Who chooses the questions (pal help samplers).", {
          "none",
#define PAL_SAMPLER(name, start) #name,
#include "core/config/samplers.def"
          "mix"}},
      {"oracle.mix", T::text_list, "[]", "oracle.sampler=mix: samplers with their shares, [{sampler: captcha, share: 0.7}, {sampler: nnclr, share: 0.3, from: 1000}]; from and until count answers."},
      {"oracle.labeler", T::choice, "labels", "Who answers: the data set's own labels (simulated), pairs of a file, or people and programs by files.", {"labels", "pairs", "exchange"}},
      {"oracle.pairs", T::text, "", "oracle.labeler=pairs: CSV i,j,weight or an HDF5 CSR group; above 0 the same, below 0 different."},
      {"oracle.votes", T::integer, "1", "Answers wanted for each question, of as many annotators.", {}, 1, 64},
      {"oracle.consensus", T::choice, "majority", "What several answers to a question make: the majority, or Dawid and Skene's estimate of who errs how.", {"majority", "dawid-skene"}},
      {"oracle.repeats", T::integer, "0", "Further answers to a question that is part of a contradiction, at most.", {}, 0, 64},
      {"oracle.annotators", T::integer, "1", "Simulated annotators.", {}, 1, 1000},
      {"oracle.annotator_noise", T::real_list, "[]", "Share of flipped answers of each simulated annotator (the last one repeats); []: oracle.noise for all.", {}, 0, 1},
      {"oracle.cost_pair", T::real, "1", "Cost of a simulated answer.", {}, 0},
      {"oracle.cost_grid", T::real, "0", "Cost of all simulated answers to one grid (captcha, outliers) together; 0: each costs as a pair.", {}, 0},
      {"oracle.cost_coarse", T::real, "0", "Cost of a simulated answer to a coarse question; 0: as a pair.", {}, 0},
      {"oracle.wait", T::choice, "continue", "While people answer: train on, or end with exit code 75 and go on when the same command is given again.", {"continue", "exit"}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"oracle.every", T::integer, "50", "Steps between rounds; a round asked at s takes effect at s + every.", {}, 1},
      {"oracle.questions_per_round", T::integer, "100", "Questions in a round.", {}, 1},
      {"oracle.pool", T::integer, "16384", "Samples a round may choose from, drawn by the seed.", {}, 1},
      {"oracle.budget", T::integer, "0", "Most questions in all (0: no limit).", {}, 0},
      {"oracle.budget_cost", T::real, "0", "No more questions once the answers cost this much (0: no limit).", {}, 0},
      {"oracle.budget_hours", T::real, "0", "No more questions so many hours after the first one (0: no limit).", {}, 0},
      {"oracle.plateau", T::integer, "0", "No more questions when the first figure of eval.every did not rise in so many looks (0: never).", {}, 0},
      {"oracle.plateau_gain", T::real, "0.001", "What counts as a rise.", {}, 0},
      {"oracle.agreement", T::real, "0", "No more questions when the model expected this share of the answers in three rounds in a row (0: never).", {}, 0, 1},
      {"oracle.noise", T::real, "0", "Share of the simulated answers that are flipped.", {}, 0, 1},
      {"oracle.members", T::integer, "10", "Samples asked against one template at a time.", {}, 1, 1000},
      {"oracle.templates", T::choice, "given", "One labeled sample of each class, or classes found on the way.", {"given", "discover"}},
      {"oracle.class_guess", T::choice, "classifier", "Which class a sample is asked against first: that of the nearest center in the embedding, that of a linear classifier on what is known, or (captcha) a random one.", {"none", "embeddings", "classifier"}},
      {"oracle.center", T::choice, "off", "Captcha: templates move to the middle of what is known of their class, by embedding or by input.", {"off", "embeddings", "input"}},
      {"oracle.priors", T::real_list, "[]", "Captcha: share of each class in the data, by label ([]: equal); a class is least known for its share.", {}, 0},
      {"oracle.outliers", T::integer, "15", "Outliers: samples believed similar, shown with one template.", {}, 1, 1000},
      {"oracle.measure", T::choice, "margin", "Uncertainty: entropy, margin between the two likeliest classes, or distance to their boundary.", {"entropy", "margin", "boundary"}},
      {"oracle.heads", T::integer, "8", "Ensemble: classifiers that vote.", {}, 2, 1000},
      {"oracle.clusters", T::integer, "0", "Pruning: clusters of k-means (0: as many as classes).", {}, 0, 1 << 20},
      {"oracle.pruning_near_until", T::real, "10", "Pruning: samples near their centers are asked until a class has so many known members on average, far ones later.", {}, 0},
      {"oracle.support", T::integer, "4096", "NNCLR: samples that neighbors are chosen from (0: among the asked ones themselves).", {}, 0, 1 << 26},
      {"oracle.neighbors", T::integer, "1", "NNCLR: neighbors looked at (0: none, plain SSL).", {}, 0, 64},
      {"oracle.coarse_accuracy", T::real, "0.9", "Coarse: share of known members that must fall into the right group before finer questions are asked.", {}, 0, 1},

      {"compare.lines", T::text_list, "[]", "pal oracle compare: the oracles, [{name: captcha, oracle.sampler: captcha}, ...]: settings by their keys; answers: assumed (yes, and free).", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"compare.seeds", T::integer, "5", "pal oracle compare: runs of each line, train.seed from 0.", {}, 1, 1000, KeyEffect::none},
      {"compare.noise", T::real_list, "[0]", "pal oracle compare: levels of oracle.noise.", {}, 0, 1, KeyEffect::none},
      {"compare.points", T::integer, "10", "pal oracle compare: points of a curve.", {}, 1, 1000, KeyEffect::none},
      {"compare.pca", T::integer, "64", "pal oracle: principal components that features are reduced to (0: as they are).", {}, 0, 65536, KeyEffect::none},
      {"compare.width", T::integer, "16", "pal oracle compare: width of the representation learned from the graph.", {}, 1, 65536, KeyEffect::none},

      {"train.global_batch", T::integer, "256", "Samples per step over all ranks.", {}, 2},
      {"train.steps", T::integer, "", "Steps to train (or train.epochs).", {}, 1},
      {"train.epochs", T::integer, "", "Epochs to train (or train.steps).", {}, 1},
      {"train.seed", T::integer, "0", "Seed of everything random.", {}, 0},
      {"train.device", T::choice, "auto", "auto takes the GPU when there is one.", {"auto", "cpu", "cuda"}},
      {"train.dtype", T::choice, "float32", "Precision of the whole CPU program.", {"float32", "float64"}},
      {"train.views", T::choice, "joint", "One forward for all views, or one each (batch-norm statistics differ).", {"joint", "separate"}},
      {"train.micro_batches", T::integer, "1", "Pieces a step is encoded in, to save memory: the loss still sees the whole batch, for one more forward pass; batch norm takes the statistics of a piece.", {}, 1, 65536},
      {"train.precision", T::choice, "full", "Encoder: in train.dtype, or bf16 autocast on a GPU.", {"full", "bf16"}},
      {"train.bucket_mb", T::real, "25", "Gradients are summed over ranks in buckets of so many MB while backward goes on.", {}, 0.001, 1024},
      {"train.grad_dtype", T::choice, "full", "Gradients between ranks: as they are, or float32 ones as bfloat16 (half the bytes; results then depend on the number of ranks).", {"full", "bfloat16"}},
      {"train.threads", T::integer, "0", "Compute threads per rank (0: the cores this rank was given).", {}, 0, 1024, KeyEffect::none},
      {"train.max_skips", T::integer, "10", "Steps in a row with a gradient that is not finite before the run goes back to the last checkpoint, and stops when that does not help.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.compare_every", T::integer, "100", "Steps between comparisons of the parameters of all ranks.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.watchdog", T::choice, "on", "Heartbeats between ranks: a rank that hangs is named and ends the job.", {"on", "off"}, -kNoLimit, kNoLimit, KeyEffect::none},

      {"optim.kind", T::choice, "lars", "Optimizer.", {
#define PAL_OPTIMIZER(name, slots) #name,
#include "core/config/optimizers.def"
      }},
      {"optim.base_lr", T::real, "", "Peak learning rate per 256 samples of the global batch (or optim.lr).", {}, 0},
      {"optim.lr", T::real, "", "Peak learning rate as it is (or optim.base_lr).", {}, 0},
      {"optim.momentum", T::real, "0.9", "Momentum of sgd and lars.", {}, 0, 1},
      {"optim.weight_decay", T::real, "1e-6", "Weight decay; 1-D parameters are left out.", {}, 0},
      {"optim.lars_eta", T::real, "0.001", "Trust coefficient of lars.", {}, 0},
      {"optim.warmup_epochs", T::real, "10", "Epochs of linear warm-up (at most a tenth of the run).", {}, 0},
      {"optim.final_ratio", T::real, "0.001", "The cosine ends at this share of the peak.", {}, 0, 1},

      {"eval.every", T::integer, "0", "Steps between looks at data.test while training: kNN and a linear probe on frozen features (0: none).", {}, 0, kNoLimit, KeyEffect::none},
      {"eval.train_samples", T::integer, "4096", "Training samples that such a look reads the classes from.", {}, 1, kNoLimit, KeyEffect::none},
      {"eval.test_samples", T::integer, "2048", "Test samples that it judges.", {}, 1, kNoLimit, KeyEffect::none},

      {"checkpoint.every", T::integer, "500", "Steps between checkpoints; the last step always makes one.", {}, 1, kNoLimit, KeyEffect::none},
      {"checkpoint.keep", T::integer, "3", "Checkpoints kept.", {}, 1, kNoLimit, KeyEffect::none},
      {"log.every", T::integer, "10", "Steps between lines of metrics.jsonl; 1 logs all.", {}, 1, kNoLimit, KeyEffect::none},
  };
  // clang-format on
  return keys;
}

const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> keys = {
      {"augment.solarise", "augment.solarize"},  {"loss.neighbours", "loss.neighbors"},
      {"oracle.neighbours", "oracle.neighbors"}, {"oracle.centre", "oracle.center"},
      {"train.watch", "train.watchdog"},         {"train.wire", "train.grad_dtype"},
      {"oracle.firm", "oracle.coarse_accuracy"}, {"oracle.near_until", "oracle.pruning_near_until"},
      {"oracle.guide", "oracle.class_guess"},
  };
  return keys;
}

}  // namespace pal::config
