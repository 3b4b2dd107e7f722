// keys: the one table of configuration keys. Parser, help, defaults and dump are made of it.
#include "core/config/config.h"

namespace pal {

const std::vector<KeySpec>& config_keys() {
  using T = KeyType;
  static const std::vector<KeySpec> keys = {
      {"data.train", T::text, "", "Training shards: a .h5 file, a folder of them, or a glob."},
      {"data.test", T::text, "", "Test shards, for evaluation.", {}, -kNoLimit, kNoLimit, KeyEffect::none},
      {"data.limit", T::integer, "0", "Train on this many samples only, drawn by the seed (0: all).", {}, 0},
      {"data.size", T::integer, "0", "Side of the augmented views in pixels (0: the images' own height).", {}, 0, 4096},
      {"data.threads", T::integer, "1", "Loader threads per rank.", {}, 1, 256, KeyEffect::none},
      {"data.prefetch", T::integer, "3", "Steps the loader prepares ahead.", {}, 1, 64, KeyEffect::none},

      {"augment.views", T::integer, "2", "Views per sample.", {}, 2, 64},
      {"augment.crop_scale", T::real_list, "[0.2, 1.0]", "Share of the area that a random crop keeps: [min, max].", {}, 0.0001, 1},
      {"augment.crop_ratio", T::real_list, "[0.75, 1.3333]", "Aspect ratio of a random crop: [min, max].", {}, 0.01, 100},
      {"augment.interpolation", T::choice, "bilinear", "Filter that resizes a crop, with antialiasing.", {"bilinear", "bicubic"}},
      {"augment.flip", T::real_list, "[0.5]", "Probability of a left-right flip, per view (the last one repeats).", {}, 0, 1},
      {"augment.jitter", T::real_list, "[0.8]", "Probability of colour jitter, per view.", {}, 0, 1},
      {"augment.jitter_strength", T::real_list, "[0.4, 0.4, 0.2, 0.1]", "Brightness, contrast, saturation, hue.", {}, 0, 10},
      {"augment.gray", T::real_list, "[0.2]", "Probability of gray, per view.", {}, 0, 1},
      {"augment.blur", T::real_list, "[0.0]", "Probability of a Gaussian blur, per view.", {}, 0, 1},
      {"augment.blur_sigma", T::real_list, "[0.1, 2.0]", "Standard deviation of the blur in pixels: [min, max].", {}, 0.01, 100},
      {"augment.solarise", T::real_list, "[0.0]", "Probability of solarisation, per view.", {}, 0, 1},
      {"augment.mean", T::real_list, "[0.485, 0.456, 0.406]", "Mean taken off each channel: three numbers, or one for all."},
      {"augment.std", T::real_list, "[0.229, 0.224, 0.225]", "Standard deviation each channel is divided by: three numbers, or one for all.", {}, 1e-6},

      {"model.backbone", T::choice, "resnet18", "Encoder.", {"convnet", "resnet18", "resnet34", "resnet50"}},
      {"model.stem", T::choice, "cifar", "First layers of a ResNet: cifar (3x3, no pooling) or imagenet (7x7/2, pooling).", {"cifar", "imagenet"}},
      {"model.widths", T::integer_list, "[32, 64, 128]", "Channels of the convnet's blocks.", {}, 1, 65536},
      {"model.projector", T::integer_list, "[2048, 2048, 2048]", "Widths of the projector's layers; [] for none.", {}, 1, 1048576},
      {"model.batch_norm", T::choice, "global", "Whose rows make the batch statistics: all ranks, the node, or each rank's own (off).", {"global", "node", "off"}},

      {"graph.kind", T::choice, "ssl", "Similarity graph.", {"ssl", "supervised", "mixed"}},
      {"graph.alpha", T::real, "0.5", "Weight of the labels in the mixed graph, (1-alpha) ssl + alpha labels.", {}, 0, 1},
      {"graph.labeled_fraction", T::real, "1.0", "Share of the training labels that the graph knows, drawn by the seed.", {}, 0, 1},
      {"graph.edge_share", T::real, "0.25", "Share of a batch drawn in pairs from samples known to be alike, where some are and some are not; the rest come once per epoch.", {}, 0, 0.9},
      {"graph.self_loops", T::choice, "auto", "Whether a row is related to itself: auto is on for vic2, off for pair losses.", {"auto", "on", "off"}},

      {"loss.kind", T::choice, "vicreg", "Loss on the graph.", {"vicreg", "vic2"}},
      {"loss.invariance", T::real, "25", "VICReg: weight of the invariance term.", {}, 0},
      {"loss.variance", T::real, "25", "VICReg: weight of the variance term.", {}, 0},
      {"loss.covariance", T::real, "1", "VICReg: weight of the covariance term.", {}, 0},
      {"loss.epsilon", T::real, "1e-4", "VICReg: added to the variance under the root.", {}, 0},
      {"loss.moments", T::choice, "per_view", "VICReg: statistics of each view (the official code) or of all rows (the paper).", {"per_view", "pooled"}},
      {"loss.reduction", T::choice, "mean", "mean trains; sum is for theory.", {"mean", "sum"}},

      {"oracle.sampler", T::choice, "none", "Who chooses the questions.", {"none", "captcha"}},
      {"oracle.labeler", T::choice, "labels", "Who answers: the data set's own labels.", {"labels"}},
      {"oracle.every", T::integer, "50", "Steps between rounds; a round asked at s takes effect at s + every.", {}, 1},
      {"oracle.questions_per_round", T::integer, "100", "Questions in a round.", {}, 1},
      {"oracle.pool", T::integer, "16384", "Samples a round may choose from, drawn by the seed.", {}, 1},
      {"oracle.budget", T::integer, "0", "Most questions in all (0: no limit).", {}, 0},
      {"oracle.noise", T::real, "0", "Share of the simulated answers that are flipped.", {}, 0, 1},
      {"oracle.members", T::integer, "10", "Captcha: samples asked against one template at a time.", {}, 1, 1000},
      {"oracle.templates", T::choice, "given", "Captcha: one labelled sample of each class, or classes found on the way.", {"given", "discover"}},
      {"oracle.guide", T::choice, "embeddings", "Captcha: ask first what lies near the class in the embedding, or at random.", {"none", "embeddings"}},

      {"train.global_batch", T::integer, "256", "Samples per step over all ranks.", {}, 2},
      {"train.steps", T::integer, "", "Steps to train (or train.epochs).", {}, 1},
      {"train.epochs", T::integer, "", "Epochs to train (or train.steps).", {}, 1},
      {"train.seed", T::integer, "0", "Seed of everything random.", {}, 0},
      {"train.device", T::choice, "auto", "auto takes the GPU when there is one.", {"auto", "cpu", "cuda"}},
      {"train.dtype", T::choice, "float32", "Precision of the whole CPU program.", {"float32", "float64"}},
      {"train.views", T::choice, "joint", "One forward for all views, or one each (batch-norm statistics differ).", {"joint", "separate"}},
      {"train.threads", T::integer, "0", "Compute threads per rank (0: the cores this rank was given).", {}, 0, 1024, KeyEffect::none},
      {"train.max_skips", T::integer, "10", "Stop after this many steps in a row with a gradient that is not finite.", {}, 1, kNoLimit, KeyEffect::none},

      {"optim.kind", T::choice, "lars", "Optimiser.", {"sgd", "lars", "adamw"}},
      {"optim.base_lr", T::real, "", "Peak learning rate per 256 samples of the global batch (or optim.lr).", {}, 0},
      {"optim.lr", T::real, "", "Peak learning rate as it is (or optim.base_lr).", {}, 0},
      {"optim.momentum", T::real, "0.9", "Momentum of sgd and lars.", {}, 0, 1},
      {"optim.weight_decay", T::real, "1e-6", "Weight decay; 1-D parameters are left out.", {}, 0},
      {"optim.lars_eta", T::real, "0.001", "Trust coefficient of lars.", {}, 0},
      {"optim.warmup_epochs", T::real, "10", "Epochs of linear warm-up (at most a tenth of the run).", {}, 0},
      {"optim.final_ratio", T::real, "0.001", "The cosine ends at this share of the peak.", {}, 0, 1},

      {"checkpoint.every", T::integer, "500", "Steps between checkpoints; the last step always makes one.", {}, 1, kNoLimit, KeyEffect::none},
      {"checkpoint.keep", T::integer, "3", "Checkpoints kept.", {}, 1, kNoLimit, KeyEffect::none},
      {"log.every", T::integer, "10", "Steps between lines of metrics.jsonl; 1 logs all.", {}, 1, kNoLimit, KeyEffect::none},
  };
  return keys;
}

}  // namespace pal
