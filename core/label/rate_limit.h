// rate_limit: a token bucket for each client: `burst` requests, refilled at `per_second`.
//
// At most `most` clients are remembered; when there are more, those whose bucket is full again are dropped, then all.
// Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace pal::label {

class RateLimit {
 public:
  RateLimit(double per_second, double burst, size_t most = 4096)
      : per_second_(per_second), burst_(burst), most_(most) {}

  // Whether `who` may send a request at `now` (seconds of a monotonic clock).
  bool allow(const std::string& who, double now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (buckets_.size() >= most_ && !buckets_.count(who)) {
      std::erase_if(buckets_, [&](const auto& b) { return level(b.second, now) >= burst_; });
      if (buckets_.size() >= most_) buckets_.clear();
    }
    Bucket& bucket = buckets_.try_emplace(who, Bucket{burst_, now}).first->second;
    bucket = {level(bucket, now), now};
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
  }

 private:
  struct Bucket {
    double left, at;
  };
  double level(const Bucket& b, double now) const { return std::min(burst_, b.left + (now - b.at) * per_second_); }

  const double per_second_, burst_;
  const size_t most_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace pal::label
