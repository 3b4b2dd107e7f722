// keys: the one table of configuration keys. The parser, the help, the defaults and the dump read it.
#include "core/config/config.h"

namespace pal::config {

const std::vector<KeySpec>& config_keys() {
  using T = KeyType;
  // Broken into lines by hand: clang-format would give every field of a long key a line.
  // clang-format off
  static const std::vector<KeySpec> keys = {
      {"data.train", T::text, "", "Training shards: a .h5 file, a folder of them, or a glob."},
      {"data.stage", T::text, "", "Local folder to copy the training shards to, once per node, e.g. ${SLURM_TMPDIR}; "
       "empty: none.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"data.test", T::text, "", "Test shards, for evaluation.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"data.limit", T::integer, "0", "Train on this many samples only, drawn by the seed (0: all).", {}, 0},
      {"data.size", T::integer, "0", "Side of the augmented views in pixels (0: the images' own height).", {}, 0, 4096},
      {"data.threads", T::integer, "1", "Loader threads per rank.", {}, 1, 256, KeyEffect::none},
      {"data.readers", T::integer, "1",
       "Extra threads per rank that only read shards ahead.", {}, 0, 256, KeyEffect::none},
      {"data.prefetch", T::integer, "3",
       "Steps that the loader prepares ahead, as far as data.memory_mb allows.", {}, 1, 64, KeyEffect::none},
      {"data.memory_mb", T::integer, "4096",
       "Upper limit of the loader's memory per rank, in MB.", {}, 1, 1e9, KeyEffect::none},
      {"data.decode", T::choice, "scaled", "JPEG: scaled decodes a crop that is much larger than its view at 1/2, 1/4 "
       "or 1/8 size; full decodes all pixels.", {"scaled", "full"}},
      {"data.decoder", T::choice, "cpu", "JPEG decoder: cpu uses the loader threads; nvjpeg runs the last part on the "
       "GPU and needs data.decode=full.", {"cpu", "nvjpeg"}},
      {"data.shuffle", T::choice, "full", "Order of an epoch: full shuffles all samples; windows shuffles runs and "
       "windows, which a disk reads ahead.", {"full", "windows"}},
      {"data.window", T::integer, "16384", "Samples in a window of data.shuffle=windows; a multiple of 16.", {}, 16},

      {"augment.views", T::integer, "2", "Large views per sample, of data.size pixels.", {}, 2, 64},
      {"augment.small_views", T::integer, "0", "Small views per sample in addition (multi-crop).", {}, 0, 64},
      {"augment.small_size", T::integer, "96", "Side of the small views in pixels.", {}, 1, 4096},
      {"augment.small_crop_scale", T::real_list, "[0.05, 0.14]",
       "Fraction of the image area that a crop of a small view covers: [min, max].", {}, 0.0001, 1},
      {"augment.crop_scale", T::real_list, "[0.2, 1.0]",
       "Fraction of the image area that a random crop covers: [min, max].", {}, 0.0001, 1},
      {"augment.crop_ratio", T::real_list, "[0.75, 1.3333]",
       "Aspect ratio of a random crop: [min, max].", {}, 0.01, 100},
      {"augment.interpolation", T::choice, "bilinear",
       "Filter that resizes a crop, with antialiasing.", {"bilinear", "bicubic"}},
      {"augment.flip", T::real_list, "[0.5]",
       "Probability of a left-right flip, per view (the last one repeats).", {}, 0, 1},
      {"augment.jitter", T::real_list, "[0.8]", "Probability of color jitter, per view.", {}, 0, 1},
      {"augment.jitter_strength", T::real_list, "[0.4, 0.4, 0.2, 0.1]",
       "Brightness, contrast, saturation, hue.", {}, 0, 10},
      {"augment.gray", T::real_list, "[0.2]", "Probability of conversion to gray, per view.", {}, 0, 1},
      {"augment.blur", T::real_list, "[0.0]", "Probability of a Gaussian blur, per view.", {}, 0, 1},
      {"augment.blur_sigma", T::real_list, "[0.1, 2.0]",
       "Standard deviation of the blur in pixels: [min, max].", {}, 0.01, 100},
      {"augment.solarize", T::real_list, "[0.0]", "Probability of solarization, per view.", {}, 0, 1},
      {"augment.noise", T::real, "0.3",
       "Features: standard deviation of a view's noise, as a fraction of the columns' mean standard deviation.", {}, 0},
      {"augment.mean", T::real_list, "[0.485, 0.456, 0.406]",
       "Mean subtracted from each channel: three numbers, or one for all."},
      {"augment.std", T::real_list, "[0.229, 0.224, 0.225]",
       "Standard deviation that divides each channel: three numbers, or one for all.", {}, 1e-6},

      {"model.backbone", T::choice, "resnet18", "Encoder.", {
#define PAL_BACKBONE(name, published) #name,
#include "core/config/backbones.def"
      }},
      {"model.init", T::text, "", "Initial weights of the backbone: a safetensors file of torchvision, timm, DINO, "
       "VICReg, solo-learn or pal export."},
      {"model.patch", T::integer, "16",
       "ViT: side of a patch in pixels; data.size must be a multiple of it.", {}, 1, 256},
      {"model.drop_path", T::real, "0", "ViT: stochastic depth, the rate of the last block.", {}, 0, 0.95},
      {"model.stem", T::choice, "cifar",
       "First layers of a ResNet: cifar (3x3, no pooling) or imagenet (7x7/2, pooling).", {"cifar", "imagenet"}},
      {"model.widths", T::integer_list, "[32, 64, 128]", "Channels of the convnet's blocks.", {}, 1, 65536},
      {"model.projector", T::integer_list, "[2048, 2048, 2048]",
       "Widths of the projector's layers; [] for none.", {}, 1, 1048576},
      {"model.predictor", T::integer_list, "[]", "NNCLR: widths of the predictor's layers after the projector, the "
       "last one the projector's last; [] for none.", {}, 1, 1048576},
      {"model.batch_norm", T::choice, "global", "Rows of the batch statistics: all ranks (global), the ranks of a "
       "node, or each rank alone (off). With node and off, results depend on the number of ranks.",
       {"global", "node", "off"}},

      {"graph.kind", T::choice, "ssl",
       "Similarity graph.", {"ssl", "supervised", "mixed", "signed", "table", "regression", "ranking", "pairs"}},
      {"graph.alpha", T::real, "0.5", "Mixed graph: weight of the labels, (1-alpha) ssl + alpha labels.", {}, 0, 1},
      {"graph.labeled_fraction", T::real, "1.0",
       "Fraction of the training labels that the graph uses, drawn by the seed.", {}, 0, 1},
      {"graph.label_noise", T::real, "0", "Fraction of the used labels that is replaced by a random class.", {}, 0, 1},
      {"graph.groups", T::text, "", "Supervised and mixed graphs: FILE:COLUMN of a CSV file; samples of one value are "
       "related, and the labels are not used (pal help graph)."},
      {"graph.table", T::text, "zero-one",
       "Table graph: the loss between each two classes, zero-one or a CSV file of C lines with C numbers."},
      {"graph.targets", T::text, "", "Regression and ranking graphs: a CSV file with a line of numbers per sample."},
      {"graph.pairs", T::text, "",
       "Weighted pairs added to the graph: CSV i,j,weight of sample numbers or names, or an HDF5 CSR group."},
      {"graph.pair_noise", T::real, "0", "Fraction of these pairs whose weight changes its sign.", {}, 0, 1},
      {"graph.missing", T::real, "0", "Probability that a pair of samples is missing from the graph.", {}, 0, 1},
      {"graph.deduction", T::choice, "on", "Pairs inferred from answers: on (a=b and b=c give a=c, over any chain), "
       "once (samples answered to equal the same template are equal, no longer chains) or off (none). Use once or off "
       "when answers may be wrong.", {"on", "once", "off"}},
      {"graph.edge_share", T::real, "0.25", "Fraction of a batch drawn as known same pairs, when only some samples "
       "have one; the other samples come once per epoch.", {}, 0, 0.9},
      {"graph.self_loops", T::choice, "auto", "Whether the graph relates a row to itself: auto is on for vic2, scl and "
       "sampled_vic2, off for the other losses.", {"auto", "on", "off"}},

      {"loss.kind", T::choice, "vicreg",
       "Loss on the graph; mse and cross_entropy are baselines on the labels (pal help losses).", {
#define PAL_LOSS(name, cost, target) #name,
#include "core/config/losses.def"
      }},
      {"loss.invariance", T::real, "25", "VICReg: weight of the invariance term.", {}, 0},
      {"loss.variance", T::real, "25", "VICReg: weight of the variance term.", {}, 0},
      {"loss.covariance", T::real, "1", "VICReg: weight of the covariance term.", {}, 0},
      {"loss.epsilon", T::real, "1e-4", "VICReg: added to the variance under the root.", {}, 0},
      {"loss.moments", T::choice, "per_view",
       "VICReg: statistics of each view (the official code) or of all rows (the paper).", {"per_view", "pooled"}},
      {"loss.margin", T::real, "0", "VICReg: minimum distance of rows known to differ, |w| relu(margin - distance)^2 "
       "(0: the root of twice the width).", {}, 0},
      {"loss.temperature", T::real, "0.1", "SimCLR, NNCLR: temperature of the softmax.", {}, 1e-3},
      {"loss.barlow", T::choice, "cross", "BarlowTwins: correlation across pairs of views (the textbook form) or over "
       "all edges of the graph.", {"cross", "graph"}},
      {"loss.lambda", T::real, "0.005", "BarlowTwins: weight of the off-diagonal correlations.", {}, 0},
      {"loss.scale", T::real, "1", "BarlowTwins: factor of the loss.", {}, 0},
      {"loss.queue", T::integer, "65536", "NNCLR: size of the queue of embeddings that neighbors are chosen from (0: "
       "the other samples of the batch).", {}, 0, 1 << 26},
      {"loss.neighbors", T::integer, "1", "NNCLR: a row is replaced by one of this many nearest neighbors, drawn at "
       "random (0: the row itself, plain SSL).", {}, 0, 64},
      {"loss.pairs", T::integer, "0", "Sampled VIC2: pairs of rows drawn per step for the term against collapse (0: "
       "all pairs of the batch).", {}, 0, 1 << 30},
      {"loss.draw", T::choice, "any",
       "Sampled VIC2: pairs of any rows, or between two random halves of the rows.", {"any", "halves"}},
      {"loss.form", T::choice, "unbiased",
       "Sampled VIC2: unbiased for VIC2, or the form printed in the paper.", {"unbiased", "printed"}},
      {"loss.reduction", T::choice, "mean", "mean for training; sum for the theory checks.", {"mean", "sum"}},

      {"oracle.sampler", T::choice, "none", "Sampler that chooses the questions (pal help samplers).", {
          "none",
#define PAL_SAMPLER(name, start) #name,
#include "core/config/samplers.def"
          "mix"}},
      {"oracle.mix", T::text_list, "[]", "oracle.sampler=mix: samplers with their fractions, [{sampler: captcha, "
       "share: 0.7}, {sampler: nnclr, share: 0.3, from: 1000}]; from and until count answers."},
      {"oracle.labeler", T::choice, "labels", "Source of the answers: labels of the data set (simulated annotators), "
       "pairs of a file, or exchange (people and programs, through files).", {"labels", "pairs", "exchange"}},
      {"oracle.pairs", T::text, "",
       "oracle.labeler=pairs: CSV i,j,weight or an HDF5 CSR group; above 0 the same, below 0 different."},
      {"oracle.votes", T::integer, "1", "Answers per question, each from another annotator.", {}, 1, 64},
      {"oracle.consensus", T::choice, "majority", "Rule that combines several answers to a question: majority vote, or "
       "Dawid and Skene's model of each annotator's errors.", {"majority", "dawid-skene"}},
      {"oracle.repeats", T::integer, "0",
       "Most additional answers to a question that is part of a contradiction.", {}, 0, 64},
      {"oracle.annotators", T::integer, "1", "Number of simulated annotators.", {}, 1, 1000},
      {"oracle.annotator_noise", T::real_list, "[]", "Fraction of flipped answers of each simulated annotator (the "
       "last number repeats); []: oracle.noise for all.", {}, 0, 1},
      {"oracle.cost_pair", T::real, "1", "Cost of a simulated answer.", {}, 0},
      {"oracle.cost_grid", T::real, "0", "Cost of all simulated answers to one grid (captcha, outliers) together; 0: "
       "each answer costs oracle.cost_pair.", {}, 0},
      {"oracle.cost_coarse", T::real, "0",
       "Cost of a simulated answer to a coarse question; 0: oracle.cost_pair.", {}, 0},
      {"oracle.wait", T::choice, "continue", "While questions are unanswered: continue training, or exit with code 75; "
       "the same command then resumes the run.", {"continue", "exit"}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"oracle.every", T::integer, "50",
       "Steps between rounds of questions; a round asked at step s takes effect at step s + every.", {}, 1},
      {"oracle.questions_per_round", T::integer, "100", "Questions in a round.", {}, 1},
      {"oracle.pool", T::integer, "16384", "Samples that a round may choose from, drawn by the seed.", {}, 1},
      {"oracle.budget", T::integer, "0", "Maximum number of questions (0: no limit).", {}, 0},
      {"oracle.budget_cost", T::real, "0", "Stop asking when the answers have cost this much (0: no limit).", {}, 0},
      {"oracle.budget_hours", T::real, "0",
       "Stop asking this many hours after the first question (0: no limit).", {}, 0},
      {"oracle.plateau", T::integer, "0",
       "Stop asking when the first metric of eval.every has not risen in this many evaluations (0: never).", {}, 0},
      {"oracle.plateau_gain", T::real, "0.001", "Smallest gain that oracle.plateau counts as a rise.", {}, 0},
      {"oracle.agreement", T::real, "0", "Stop asking when the model predicts this fraction of the answers in three "
       "rounds in a row (0: never).", {}, 0, 1},
      {"oracle.noise", T::real, "0", "Fraction of the simulated answers that are flipped.", {}, 0, 1},
      {"oracle.members", T::integer, "10", "Samples compared with one template in one question.", {}, 1, 1000},
      {"oracle.templates", T::choice, "auto", "given: one labeled sample of each class; discover: classes are found "
       "while asking; auto: given where the run knows a label, else discover.", {"auto", "given", "discover"}},
      {"oracle.class_guess", T::choice, "classifier", "Class that a sample is compared with first: of the nearest "
       "center in the embedding, of a linear classifier on the known labels, or (captcha) a random one.",
       {"none", "embeddings", "classifier"}},
      {"oracle.center", T::choice, "off", "Captcha: each template becomes the known member nearest to the mean of its "
       "class, by embedding or by input.", {"off", "embeddings", "input"}},
      {"oracle.priors", T::real_list, "[]", "Captcha: fraction of each class in the data, by label ([]: equal); "
       "captcha asks about the class with the fewest known members for its fraction.", {}, 0},
      {"oracle.outliers", T::integer, "15",
       "Outliers: samples predicted to be of one class, shown with one template.", {}, 1, 1000},
      {"oracle.measure", T::choice, "margin", "Uncertainty: entropy, margin between the two likeliest classes, or "
       "distance to their boundary.", {"entropy", "margin", "boundary"}},
      {"oracle.heads", T::integer, "8", "Ensemble: classifiers that vote.", {}, 2, 1000},
      {"oracle.clusters", T::integer, "0", "Pruning: clusters of k-means (0: as many as classes).", {}, 0, 1 << 20},
      {"oracle.pruning_near_until", T::real, "10", "Pruning: asks about samples near their centers until a class has "
       "this many known members on average, then about far ones.", {}, 0},
      {"oracle.support", T::integer, "4096",
       "NNCLR: samples that neighbors are chosen from (0: the asked samples themselves).", {}, 0, 1 << 26},
      {"oracle.neighbors", T::integer, "1", "NNCLR: neighbors considered (0: none, plain SSL).", {}, 0, 64},
      {"oracle.coarse_accuracy", T::real, "0.9", "Coarse: fraction of known members that the model must assign to the "
       "right group before finer questions are asked.", {}, 0, 1},

      {"label.question", T::text, "", "pal label: question about a sample and the template, answered by yes or no, "
       "e.g. \"Is this the same patient?\"; empty: the page's own words.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"label.instructions", T::lines, "[]", "pal label: plain text that people read at their first visit and in "
       "the help of the page: a text, or a list of lines.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"label.class_names", T::flag, "true",
       "pal label: show the class of the template where it is known.", {}, -kNoLimit, kNoLimit, KeyEffect::none},

      {"compare.lines", T::text_list, "[]", "pal oracle compare: the oracles as settings, [{name: captcha, "
       "oracle.sampler: captcha}, ...]; answers: assumed takes every answer as yes, free of cost.",
       {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"compare.seeds", T::integer, "5",
       "pal oracle compare: runs of each line, train.seed from 0.", {}, 1, 1000, KeyEffect::none},
      {"compare.noise", T::real_list, "[0]", "pal oracle compare: levels of oracle.noise.", {}, 0, 1, KeyEffect::none},
      {"compare.points", T::integer, "10", "pal oracle compare: points per curve.", {}, 1, 1000, KeyEffect::none},
      {"compare.pca", T::integer, "64", "pal oracle: principal components that features are reduced to (0: as they "
       "are).", {}, 0, 65536, KeyEffect::none},
      {"compare.width", T::integer, "16",
       "pal oracle compare: width of the representation learned from the graph.", {}, 1, 65536, KeyEffect::none},

      {"train.global_batch", T::integer, "256", "Samples per step over all ranks.", {}, 2},
      {"train.steps", T::integer, "", "Steps to train (or train.epochs).", {}, 1},
      {"train.epochs", T::integer, "", "Epochs to train (or train.steps).", {}, 1},
      {"train.seed", T::integer, "0", "Seed of all random numbers.", {}, 0},
      {"train.device", T::choice, "auto",
       "auto uses the GPUs when every rank has one of its own, else the CPU.", {"auto", "cpu", "cuda"}},
      {"train.dtype", T::choice, "float32", "Floating-point type on the CPU.", {"float32", "float64"}},
      {"train.views", T::choice, "joint", "joint: one forward pass for all views; separate: one per view (batch-norm "
       "statistics differ).", {"joint", "separate"}},
      {"train.micro_batches", T::integer, "1", "Pieces in which a step is encoded, to save memory. The loss still "
       "covers the whole batch, at the price of one more forward pass; batch norm uses the statistics of a piece.",
       {}, 1, 65536},
      {"train.precision", T::choice, "full",
       "Precision of the encoder: train.dtype, or bf16 autocast on a GPU.", {"full", "bf16"}},
      {"train.deterministic", T::choice, "off", "GPUs: algorithms of LibTorch, cuDNN and cuBLAS that give the same "
       "bits in every run; slower. CPU ranks do so anyway.", {"off", "on"}},
      {"train.bucket_mb", T::real, "25",
       "Size in MB of a gradient bucket; ranks all-reduce buckets while backward runs.", {}, 0.001, 1024},
      {"train.grad_dtype", T::choice, "full", "Type of the gradients sent between ranks: full, or bfloat16 for float32 "
       "ones (half the bytes; results then depend on the number of ranks).", {"full", "bfloat16"}},
      {"train.threads", T::integer, "0",
       "Compute threads per rank (0: the cores assigned to the rank).", {}, 0, 1024, KeyEffect::none},
      {"train.max_skips", T::integer, "10", "Consecutive steps with a non-finite gradient before the run goes back to "
       "the last checkpoint; if it happens again there, the run stops.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.compare_every", T::integer, "100",
       "Steps between comparisons of the parameters of all ranks.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.watchdog", T::choice, "on", "Heartbeats between ranks: a rank that hangs is reported and the job ends.",
       {"on", "off"}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"train.heartbeat_seconds", T::real, "10", "Seconds without a heartbeat after which a rank is lost, unless its "
       "process still works.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.stall_seconds", T::real, "10", "Seconds, and at least ten median steps, that ranks wait in a collective "
       "for a rank that does not work.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.start_seconds", T::real, "120",
       "Seconds that the GPU ranks of a job wait for each other at its start.", {}, 1, kNoLimit, KeyEffect::none},
      {"train.hang_seconds", T::real, "600", "Seconds that ranks wait for one that still works (computes, reads, waits "
       "for its loader), and during start, query rounds and checkpoints.", {}, 1, kNoLimit, KeyEffect::none},

      {"optim.kind", T::choice, "lars", "Optimizer.", {
#define PAL_OPTIMIZER(name, slots) #name,
#include "core/config/optimizers.def"
      }},
      {"optim.base_lr", T::real, "", "Peak learning rate per 256 samples of the global batch (or optim.lr).", {}, 0},
      {"optim.lr", T::real, "", "Peak learning rate, not scaled (or optim.base_lr).", {}, 0},
      {"optim.momentum", T::real, "0.9", "Momentum of sgd and lars.", {}, 0, 1},
      {"optim.weight_decay", T::real, "1e-6", "Weight decay; 1-D parameters are excluded.", {}, 0},
      {"optim.lars_eta", T::real, "0.001", "Trust coefficient of lars.", {}, 0},
      {"optim.warmup_epochs", T::real, "10", "Epochs of linear warm-up (at most a tenth of the run).", {}, 0},
      {"optim.final_ratio", T::real, "0.001",
       "Final learning rate of the cosine schedule, as a fraction of the peak.", {}, 0, 1},

      {"eval.every", T::integer, "0", "Steps between evaluations on data.test while training: kNN and a linear probe "
       "on frozen features (0: none).", {}, 0, kNoLimit, KeyEffect::none},
      {"eval.train_samples", T::integer, "4096",
       "Training samples that such an evaluation uses.", {}, 1, kNoLimit, KeyEffect::none},
      {"eval.test_samples", T::integer, "2048",
       "Test samples that such an evaluation uses.", {}, 1, kNoLimit, KeyEffect::none},

      {"checkpoint.every", T::integer, "500",
       "Steps between checkpoints; the last step always makes one.", {}, 1, kNoLimit, KeyEffect::none},
      {"checkpoint.minutes", T::real, "10", "Minutes after a checkpoint at which the next one is made, if "
       "checkpoint.every has not come first (0: never).", {}, 0, kNoLimit, KeyEffect::none},
      {"checkpoint.keep", T::integer, "3", "Number of checkpoints kept.", {}, 1, kNoLimit, KeyEffect::none},
      {"log.every", T::integer, "10",
       "Steps between lines of metrics.jsonl; 1 logs all.", {}, 1, kNoLimit, KeyEffect::none},
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
