// dataset: the samples of one or more shards as one list, read by id.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/augment.h"

namespace pal::data {

enum class Encoding { raw, jpeg, features };  // features: rows of floats that another program made (feature_set.h)

struct SideRange {
  int32_t min = 0, median = 0, max = 0;  // pixels; 0: not known
};
struct ImageSides {
  SideRange height, width;
};

class Dataset {
 public:
  // `pattern`: a file, a folder of *.h5, a glob, or a file of features (feature_set.h). x.h5 also means the shards
  // x-00000-of-00004.h5, …, where there is no file x.h5. Shards come in name order.
  // Throws Error (data) with the file and the reason.
  static std::shared_ptr<Dataset> open(const std::string& pattern);
  static std::shared_ptr<Dataset> open(const std::vector<std::string>& patterns);  // as one set
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual Encoding encoding() const = 0;
  virtual double spread() const { return 0; }  // features: mean standard deviation of a column
  // (height, width, channels); 0 where images differ. Features: (1, 1, D).
  virtual std::vector<int32_t> shape() const = 0;
  virtual ImageSides sides() const { return {}; }          // of images of several sizes; the median is near it
  virtual const std::vector<int64_t>& labels() const = 0;  // (N), −1 unknown; empty when the set has none
  virtual const std::vector<std::string>& classes() const = 0;
  virtual std::vector<int64_t> parents() const {
    return {};
  }  // of class nodes, the classes first; −1 root; empty: no taxonomy
  virtual std::string id(int64_t sample) const { return std::to_string(sample); }  // its name at the source
  virtual std::string where(int64_t sample) const {
    return "sample " + std::to_string(sample);
  }                                          // file and sample, for messages
  virtual uint64_t fingerprint() const = 0;  // of sizes, labels and CRCs; the same for any sharding

  virtual uint32_t checksum(int64_t) const { return 0; }  // CRC32C of the stored bytes; 0: not stored

  // Reads the stored bytes of a sample and checks their CRC (a mismatch is an error with file and sample). Thread-safe
  // (pread).
  virtual void read(int64_t sample, std::vector<uint8_t>& bytes) const = 0;
  // Announces that the samples [begin, end) will be read soon, so that the disk can read ahead.
  virtual void will_read(int64_t, int64_t) const {}
  // The image of raw bytes read by read().
  virtual kernels::ImageView image(int64_t sample, const std::vector<uint8_t>& bytes) const = 0;
};

std::vector<std::string> sample_names(const Dataset& data);  // id() of every sample
// A sentence where more than 1 % of the test images have the checksum of a training image; "" otherwise.
std::string overlap_warning(const Dataset& train, const Dataset& test);
std::vector<std::string> expand_glob(const std::string& pattern);  // sorted
std::vector<std::string> shard_files(const std::string& name);  // x.h5 → x-00000-of-00004.h5, … that exist, sorted
// The files that Dataset::open takes, in its order.
std::vector<std::string> dataset_files(const std::string& pattern);
std::vector<std::string> dataset_files(const std::vector<std::string>& patterns);

}  // namespace pal::data
