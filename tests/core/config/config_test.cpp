// config_test: loading, later settings over earlier ones, the sentences of errors, and dump() read back.
#include "core/config/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::config {
namespace {

namespace fs = std::filesystem;

class ConfigTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return (dir_ / name).string();
  }
  // The sentence of the error, without the folder.
  std::string refusal(const std::string& path, const std::vector<std::string>& overrides = {}) {
    try {
      Config::load(path, overrides);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
      std::string text = e.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      for (size_t at; (at = text.find(dir_.string() + "/")) != std::string::npos;)
        text.erase(at, dir_.string().size() + 1);
      return text;
    }
    return "nothing was refused";
  }
  std::string refusal_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    return refusal(write("c.yaml", yaml), overrides);
  }

  const TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

const std::string kRun = "train: {steps: 10}\noptim: {lr: 0.1}\n";

TEST(ConfigTable, DefaultsAreValidAndNamesAreUnique) {
  const Config config = Config::defaults();  // parses every default by its own key's rules
  std::vector<std::string> names;
  std::string section;
  std::vector<std::string> sections;
  for (const KeySpec& key : config_keys()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), key.name), 0) << key.name;
    names.push_back(key.name);
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_EQ(key.help.back(), '.') << key.name;
    EXPECT_EQ(key.type == KeyType::choice, !key.choices.empty()) << key.name;
    EXPECT_EQ(config.has(key.name), !key.default_value.empty()) << key.name;
    if (key.name.substr(0, key.name.find('.')) != section)
      sections.push_back(section = key.name.substr(0, key.name.find('.')));
  }
  std::sort(sections.begin(), sections.end());  // dump writes a section once
  EXPECT_EQ(std::adjacent_find(sections.begin(), sections.end()), sections.end());
}

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
  EXPECT_EQ(suggest("trian", {"data", "train", "eval"}), "train");
  EXPECT_EQ(suggest("model.seed", {"model.stem", "train.seed"}), "train.seed");
  EXPECT_EQ(suggest("x", {}), "");
}

TEST_F(ConfigTest, ReadsEveryTypeAndItsOrigin) {
  const std::string path = write("c.yaml",
                                 "data:\n  train: 'my data/*.h5'\ntrain:\n  steps: 12\n"
                                 "model: {projector: [64, 32]}\naugment:\n  flip: 0.25\n  crop_scale: [0.3, 1]\n");
  const Config config = Config::load(path, {"optim.base_lr=3e-1", "model.widths=8,16", "loss.kind=vic2"});
  EXPECT_EQ(config.text("data.train"), "my data/*.h5");
  EXPECT_EQ(config.integer("train.steps"), 12);
  EXPECT_EQ(config.integer_list("model.projector"), (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(config.integer_list("model.widths"), (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(config.real_list("augment.crop_scale"), (std::vector<double>{0.3, 1.0}));
  EXPECT_EQ(config.real_list("augment.flip"), (std::vector<double>{0.25}));
  EXPECT_EQ(config.real("optim.base_lr"), 0.3);
  EXPECT_EQ(config.text("loss.kind"), "vic2");
  EXPECT_FALSE(config.has("optim.lr"));
  EXPECT_EQ(config.origin("train.steps"), path + ":4");
  EXPECT_EQ(config.origin("loss.kind"), "command line");
  EXPECT_EQ(config.origin("train.seed"), "default");
  EXPECT_EQ(config.origin("optim.lr"), "not set");
}

TEST_F(ConfigTest, LaterSettingsWin) {
  write("lib/a.yaml", "train: {seed: 1, global_batch: 10, steps: 5}\noptim: {lr: 1}\n");
  write("lib/b.yaml", "base: a.yaml\ntrain: {seed: 2}\n");
  write("c.yaml", "train: {global_batch: 30}\n");
  const std::string path = write("d.yaml", "base: [lib/b.yaml, c.yaml]\noptim: {momentum: 0.5}\n");
  const Config config = Config::load(path, {"optim.momentum=0.6", "optim.momentum=0.7"});
  EXPECT_EQ(config.integer("train.seed"), 2);
  EXPECT_EQ(config.integer("train.global_batch"), 30);
  EXPECT_EQ(config.integer("train.steps"), 5);
  EXPECT_EQ(config.real("optim.momentum"), 0.7);
  EXPECT_EQ(config.origin("train.steps"), (dir_ / "lib/a.yaml:1").string());
}

TEST_F(ConfigTest, NullResetsAKeyToItsDefault) {
  write("a.yaml", kRun + "loss: {covariance: 7}\n");
  const std::string path =
      write("c.yaml", "base: a.yaml\ntrain: {steps: ~, epochs: 3}\nloss:\n  covariance:\noracle:\n");
  const Config config = Config::load(path, {"optim.lr=", "optim.base_lr=0.2"});
  EXPECT_FALSE(config.has("train.steps"));
  EXPECT_EQ(config.integer("train.epochs"), 3);
  EXPECT_EQ(config.real("loss.covariance"), 1);
  EXPECT_EQ(config.origin("loss.covariance"), "default");
}

TEST_F(ConfigTest, Environment) {
  setenv("PAL_TEST_DIR", "/data", 1);
  setenv("PAL_TEST_LIST", "[4, 5]", 1);
  unsetenv("PAL_TEST_NONE");
  const std::string path =
      write("c.yaml", kRun +
                          "data:\n  train: ${PAL_TEST_DIR}/${PAL_TEST_NONE:-x}.h5\n  test: \"${PAL_TEST_NONE:-t}\"\n"
                          "model: {widths: \"${PAL_TEST_LIST}\"}\n");
  const Config config = Config::load(path, {});
  EXPECT_EQ(config.text("data.train"), "/data/x.h5");
  EXPECT_EQ(config.origin("data.train"), path + ":4, environment PAL_TEST_DIR");
  EXPECT_EQ(config.text("data.test"), "t");
  EXPECT_EQ(config.origin("data.test"), path + ":5");
  EXPECT_EQ(config.integer_list("model.widths"), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(refusal_of("\ndata: {train: \"${PAL_TEST_NONE}\"}"),
            "c.yaml:2: an environment variable is not set: PAL_TEST_NONE; set it, or write ${PAL_TEST_NONE:-default}");
  EXPECT_NE(refusal_of("data: {train: \"${PAL\"}").find("${ has no matching }"), std::string::npos);
}

TEST_F(ConfigTest, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(refusal_of("train:\n  stesp: 3\n"),
            "c.yaml:2: unknown key train.stesp; the nearest is train.steps (all of them: pal config --keys)");
  EXPECT_NE(refusal_of(kRun, {"optim.learning_rat=1"})
                .find("command line: unknown key optim.learning_rat; the nearest is optim."),
            std::string::npos);
  EXPECT_NE(refusal_of(kRun, {"seed=1"}).find("the nearest is train.seed"), std::string::npos);
  EXPECT_NE(refusal_of("trian: {seed: 3}\n").find("the nearest is train.seed"), std::string::npos);
  EXPECT_NE(refusal_of("train: {seed: {deep: 3}}\n").find("unknown key train.seed.deep"), std::string::npos);
  EXPECT_NE(refusal_of("train: 3\n").find("train is a section"), std::string::npos);
  EXPECT_NE(refusal_of(kRun, {"train.seed"}).find("write section.key=value"), std::string::npos);
}

TEST_F(ConfigTest, ErrorsOfWrongValuesNameTheAllowedOnes) {
  const auto of = [&](const std::string& setting) { return refusal_of(kRun, {setting}); };
  EXPECT_EQ(of("train.global_batch=many"),
            "command line: train.global_batch is many; it must be an integer of at least 2");
  EXPECT_EQ(of("train.global_batch=1"), "command line: train.global_batch is 1; it must be an integer of at least 2");
  EXPECT_EQ(of("augment.views=99"), "command line: augment.views is 99; it must be an integer from 2 to 64");
  EXPECT_EQ(of("loss.kind=vicregg").substr(0, 41), "command line: loss.kind is vicregg; it mu");
  EXPECT_NE(of("loss.kind=vicregg").find("(the nearest is vicreg)"), std::string::npos);
  for (const char* bad : {"graph.alpha=1.5",
                          "graph.alpha=nan",
                          "graph.alpha=0.5x",
                          "optim.momentum=inf",
                          "train.seed=1.0",
                          "train.seed=0x10",
                          "train.seed=9223372036854775808",
                          "train.seed=-1",
                          "model.projector=[8, x]",
                          "model.widths=[]",
                          "augment.crop_scale=[1, 0.5]",
                          "augment.crop_scale=0.5",
                          "augment.crop_scale=[0, 1]",
                          "augment.flip=[]",
                          "augment.flip=[.1, .2, .3]",
                          "augment.flip=1.1",
                          "augment.jitter_strength=[1, 1, 1]",
                          "augment.jitter_strength=[1, 1, 1, 0.6]",
                          "augment.mean=[0.5, 0.5]",
                          "augment.std=[1, 1, 0]",
                          "data.train=a\nb",
                          "train.steps=0"}) {
    const std::string sentence = of(bad);
    EXPECT_NE(sentence.find("must be"), std::string::npos) << bad << ": " << sentence;
  }
  EXPECT_NE(refusal_of(kRun + "data: {limit: [1, 2]}").find("data.limit is a list"), std::string::npos);
  EXPECT_NE(of("model.projector=[8, [9]]").find("a list may hold plain values only"), std::string::npos);
}

TEST_F(ConfigTest, NvjpegNeedsAGpu) {
  const auto of = [&](const std::vector<std::string>& settings) { return refusal_of(kRun, settings); };
  EXPECT_EQ(
      of({"data.decoder=nvjpeg"}),
      "default: data.decode is scaled; it must be full when data.decoder=nvjpeg: nvJPEG decodes all pixels of a crop");
  const std::string cpu = of({"data.decoder=nvjpeg", "data.decode=full", "train.device=cpu"});
  EXPECT_EQ(cpu, "command line: data.decoder is nvjpeg; it must be cpu when train.device=cpu: nvJPEG runs on a GPU");
  EXPECT_NE(of({"data.decoder=nvjpeg", "data.decode=full", "train.dtype=float64"})
                .find("it must be cpu when train.dtype=float64"),
            std::string::npos);
  EXPECT_EQ(of({"data.decoder=nvjpeg", "data.decode=full"}), "nothing was refused");
}

TEST_F(ConfigTest, ExactlyOneLengthAndOneLearningRate) {
  EXPECT_NE(refusal_of("optim: {lr: 1}").find("neither train.steps nor train.epochs is set"), std::string::npos);
  EXPECT_NE(refusal_of("train: {epochs: 1}").find("neither optim.lr nor optim.base_lr is set"), std::string::npos);
  const std::string both = refusal_of(kRun, {"train.epochs=2"});
  EXPECT_NE(both.find("both are set: train.steps (c.yaml:1) and train.epochs (command line)"), std::string::npos)
      << both;
  EXPECT_NE(refusal_of(kRun + "", {"optim.base_lr=2"}).find("both are set"), std::string::npos);
  EXPECT_THROW(Config::defaults({"train.steps=1", "train.epochs=1"}), Error);
}

TEST_F(ConfigTest, BadFiles) {
  EXPECT_NE(refusal((dir_ / "none.yaml").string()).find("this config file does not exist: none.yaml"),
            std::string::npos);
  EXPECT_NE(refusal(dir_.string()).find("is a folder"), std::string::npos);
  EXPECT_NE(refusal_of("train:\n  steps: [1\n").find("not YAML"), std::string::npos);
  EXPECT_NE(refusal_of("- a\n- b\n").find("does not hold sections"), std::string::npos);
  EXPECT_NE(refusal_of(kRun + "---\n" + kRun).find("more than one YAML document"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(2 << 20, 'x')).find("larger than a megabyte"), std::string::npos);
  EXPECT_NE(refusal_of("&a train: &b {x: *b}").find("c.yaml"), std::string::npos);
  EXPECT_EQ(refusal_of("train:\n  seed: 1\n  steps: 2\n  seed: 1\n"),
            "c.yaml:4: a key is set twice: train.seed; remove one; the first is on line 2");
  EXPECT_NE(
      refusal_of("train: {seed: 1}\noptim: {lr: 1}\ntrain: {steps: 2}\n").find("c.yaml:3: a key is set twice: train"),
      std::string::npos);
  EXPECT_NE(refusal_of("train: {steps: 1}\ntrain.steps: 2\n").find("is set twice"), std::string::npos);
}

// yaml-cpp makes documents without end of these.
TEST_F(ConfigTest, TextAfterTheDocument) {
  for (const char* text : {"\"a\",b", "[1],2", "\"path\",\"label\"\n\"1.jpg\",\"cat\"\n"})
    EXPECT_NE(refusal_of(text).find("more than one YAML document"), std::string::npos) << text;
}

TEST_F(ConfigTest, FilesWithTooManyAliasesAreRefused) {
  std::string lists, maps = "a0: &a0 {}\n";  // eight levels of twelve aliases
  for (int level = 1; level <= 8; ++level) {
    maps += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " {";
    for (int k = 0; k < 12; ++k) maps += "k" + std::to_string(k) + ": *a" + std::to_string(level - 1) + ", ";
    maps += "}\n";
  }
  EXPECT_NE(refusal_of(maps).find("more than 10000 keys"), std::string::npos);
  lists = "a: &a [b]\nb: [";
  for (int k = 0; k < 200; ++k) lists += "*a, ";
  EXPECT_NE(refusal_of(lists + "]\n").find("more than 100 aliases"), std::string::npos);
}

TEST_F(ConfigTest, TooManyBaseFilesAreRefused) {
  for (int k = 0; k < 40; ++k) {  // 2^40 reads
    const std::string next = "d" + std::to_string(k + 1) + ".yaml";
    write("d" + std::to_string(k) + ".yaml", "base: [" + next + ", " + next + "]\n");
  }
  write("d40.yaml", kRun);
  EXPECT_NE(refusal((dir_ / "d0.yaml").string()).find("more than 64 base files"), std::string::npos);
  for (int k = 0; k < 100; ++k) write("c" + std::to_string(k) + ".yaml", "base: c" + std::to_string(k + 1) + ".yaml\n");
  EXPECT_NE(refusal((dir_ / "c0.yaml").string()).find("more than 64 base files"), std::string::npos);
  ASSERT_EQ(mkfifo((dir_ / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_NE(refusal((dir_ / "pipe.yaml").string()).find("is a pipe or a device: pipe.yaml"), std::string::npos);
}

TEST_F(ConfigTest, BadBaseFiles) {
  write("x/b.yaml", "base: ../c.yaml\n");
  EXPECT_EQ(refusal_of("base: x/b.yaml\n"),
            "x/b.yaml:1: this base file includes itself: c.yaml; remove one of the base: lines");
  EXPECT_NE(refusal_of("base: c.yaml\n").find("includes itself"), std::string::npos);
  EXPECT_NE(refusal_of("\nbase: none.yaml\n").find("c.yaml:2: this config file does not exist: none.yaml"),
            std::string::npos);
  EXPECT_NE(refusal_of("base: {a: b}\n").find("base must be a file"), std::string::npos);
  write("same.yaml", kRun);  // twice the same file is no cycle
  EXPECT_EQ(Config::load(write("c.yaml", "base: [same.yaml, same.yaml]"), {}).integer("train.steps"), 10);
}

TEST_F(ConfigTest, DumpReadsBackAsItself) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string alphabet = "ab09 .,:;-_/\\\"'#&*!|>%@`{}[]?=~é\xff";
  for (int trial = 0; trial < 200; ++trial) {
    std::string text;
    for (size_t n = 1 + random() % 12; text.size() < n;) text += alphabet[random() % alphabet.size()];
    if (trial == 0) text = "---";
    const double real =
        std::uniform_real_distribution<double>(0, 1)(random) * std::pow(10.0, -static_cast<double>(random() % 12));
    const Config config =
        Config::defaults({"train.steps=3", "optim.lr=" + std::to_string(random() % 99), "model.projector=[]",
                          "graph.alpha=" + std::to_string(real), "data.test=" + text});
    const std::string path = write("resolved.yaml", config.dump());
    const Config back = Config::load_resolved(path);
    EXPECT_EQ(back.dump(), config.dump()) << text;
    for (const KeySpec& key : config_keys())
      EXPECT_EQ(back.formatted(key.name), config.formatted(key.name)) << key.name;
    EXPECT_TRUE(back.differing_keys(config).empty());
  }
}

TEST_F(ConfigTest, ResolvedFilesAreNotExpanded) {
  const Config config = Config::load_resolved(write("r.yaml", kRun + "data: {train: \"${HOME}/x\"}\n"));
  EXPECT_EQ(config.text("data.train"), "${HOME}/x");
  EXPECT_THROW(Config::load_resolved(write("r.yaml", kRun + "base: other.yaml\n")), Error);
}

TEST_F(ConfigTest, DifferingKeys) {
  const Config a = Config::defaults({"train.steps=3", "optim.lr=0.10", "log.every=1", "data.threads=2"});
  const Config b =
      Config::defaults({"train.epochs=3", "optim.lr=1e-1", "log.every=2", "train.seed=5", "augment.flip=[0.4]"});
  EXPECT_EQ(a.differing_keys(b),
            (std::vector<std::string>{"augment.flip", "train.steps", "train.epochs", "train.seed"}));
  EXPECT_EQ(b.differing_keys(a), a.differing_keys(b));
}

// ---- keys that were renamed -----------------------------------------------------------------------------------------

// A value that the key may have and does not have by default.
std::string other_value(const KeySpec& key) {
  switch (key.type) {
    case KeyType::choice:
      return key.choices.front() == key.default_value ? key.choices.back() : key.choices.front();
    case KeyType::integer:
      return std::to_string(std::stoll(key.default_value) + 1);
    case KeyType::real:
      return "0.75";
    default:
      return "[0.25]";
  }
}

TEST_F(ConfigTest, ARenamedKeyWorksInAFileAndOnTheCommandLine) {
  ASSERT_FALSE(renamed_keys().empty());
  for (const RenamedKey& renamed : renamed_keys()) {
    SCOPED_TRACE(renamed.before);
    ASSERT_EQ(find_key(renamed.before), nullptr);
    const KeySpec* const key = find_key(renamed.now);
    ASSERT_NE(key, nullptr);
    const std::string value = other_value(*key);
    ASSERT_NE(value, key->default_value);
    const size_t dot = renamed.before.find('.');
    const std::string text =
        renamed.before.substr(0, dot) + ": {" + renamed.before.substr(dot + 1) + ": " + value + "}\n";
    const std::string run = "train.steps=3", rate = "optim.lr=1";
    const Config expected = Config::defaults({run, rate, renamed.now + "=" + value});
    EXPECT_TRUE(expected.notes().empty());
    const auto expect_the_same = [&](const Config& config, const std::string& origin) {
      EXPECT_EQ(config.dump(), expected.dump());
      EXPECT_TRUE(config.differing_keys(expected).empty());
      ASSERT_EQ(config.notes().size(), 1u);
      const std::string& note = config.notes()[0];
      EXPECT_NE(note.find(renamed.before + " is now called " + renamed.now), std::string::npos) << note;
      EXPECT_NE(note.find(origin), std::string::npos) << note;
      EXPECT_EQ(note.find('\n'), std::string::npos);
    };
    expect_the_same(Config::load(write("old.yaml", text), {run, rate}), "old.yaml:1");
    expect_the_same(Config::load(write("none.yaml", "\n"), {run, rate, renamed.before + "=" + value}), "command line");
    // The later setting wins under either name; null resets the key to its default.
    EXPECT_EQ(Config::load(write("old.yaml", text), {run, rate, renamed.now + "=null"}).formatted(renamed.now),
              Config::defaults().formatted(renamed.now));
  }
}

// The config.yaml of an older run folder has the old names.
TEST_F(ConfigTest, ARunFolderWithOldKeysHasNoDifference) {
  for (const RenamedKey& renamed : renamed_keys()) {
    SCOPED_TRACE(renamed.before);
    const std::string value = other_value(*find_key(renamed.now));
    const Config now = Config::defaults({"train.steps=3", "optim.lr=1", renamed.now + "=" + value});
    std::string text = now.dump();
    const auto word = [](const std::string& key) { return "  " + key.substr(key.find('.') + 1) + ":"; };
    const std::string section = renamed.now.substr(0, renamed.now.find('.')) + ":\n";
    const size_t at = text.find(word(renamed.now), text.find("\n" + section));
    ASSERT_NE(at, std::string::npos);
    text.replace(at, word(renamed.now).size(), word(renamed.before));
    const Config old = Config::load_resolved(write("run/config.yaml", text));
    EXPECT_TRUE(old.differing_keys(now).empty());
    EXPECT_EQ(old.dump(), now.dump());
    EXPECT_EQ(old.notes().size(), 1u);
    EXPECT_EQ(Config::defaults({"train.steps=3", "optim.lr=1"}).differing_keys(old).size(),
              find_key(renamed.now)->effect == KeyEffect::result ? 1u : 0u);
  }
}

}  // namespace
}  // namespace pal::config
