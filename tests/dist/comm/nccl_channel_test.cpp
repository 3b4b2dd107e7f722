// nccl_channel: every collective on the stand-ins, with streams late, equal bit for bit to MPI's on exact sums.
#include "dist/comm/nccl_channel.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/base/error.h"
#include "tests/dist/comm/nccl_tools.h"

namespace pal::dist {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// One communicator for all cases of a type.
template <class T>
class NcclCollectives : public testing::Test {
 protected:
  static void SetUpTestSuite() { channel_ = new NcclChannel(MPI_COMM_WORLD, 0); }
  static void TearDownTestSuite() {
    channel_->close();
    delete channel_;
  }
  static NcclChannel& channel() { return *channel_; }
  static constexpr NcclType type = TypeOf<T>::value;
  const int W = channel().size(), r = channel().rank();
  UserStream user;

  // Uneven on purpose: rank k has 3 (k + 1) elements, rank 2 none.
  NcclChannel::Counts uneven() const {
    NcclChannel::Counts n;
    for (int k = 0; k < W; ++k) n.push_back(k == 2 ? 0 : 3 * (k + 1));
    return n;
  }
  static int64_t sum(const NcclChannel::Counts& n) { return std::accumulate(n.begin(), n.end(), int64_t{0}); }

  // By MPI, from the same numbers as int.
  std::vector<T> mpi_reduced(int64_t n, MPI_Op op, int shift = 0) const {
    std::vector<int> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(given(r + shift, i));
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_INT, op, MPI_COMM_WORLD);
    return {values.begin(), values.end()};
  }
  std::vector<T> mpi_gathered(const NcclChannel::Counts& n) const {
    std::vector<int> mine, all(static_cast<size_t>(sum(n))), counts(n.begin(), n.end()), starts(n.size());
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    for (int64_t i = 0; i < n[static_cast<size_t>(r)]; ++i) mine.push_back(given(r, i));
    MPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), MPI_INT, all.data(), counts.data(), starts.data(),
                   MPI_INT, MPI_COMM_WORLD);
    return {all.begin(), all.end()};
  }
  std::vector<T> part(const std::vector<T>& all, const NcclChannel::Counts& n) const {
    const int64_t begin = std::accumulate(n.begin(), n.begin() + r, int64_t{0});
    return {all.begin() + begin, all.begin() + begin + n[static_cast<size_t>(r)]};
  }

 private:
  static inline NcclChannel* channel_ = nullptr;
};

using Types = testing::Types<float, double, Half, int32_t, int64_t, uint8_t>;
TYPED_TEST_SUITE(NcclCollectives, Types);

TYPED_TEST(NcclCollectives, AllReduceInPlaceAndNot) {
  NcclChannel& channel = this->channel();
  const std::pair<NcclOp, MPI_Op> ops[] = {{NcclOp::sum, MPI_SUM}, {NcclOp::max, MPI_MAX}, {NcclOp::min, MPI_MIN}};
  for (int64_t n : {1, 1000}) {
    for (const auto& [op, mpi_op] : ops) {
      DeviceBuffer<TypeParam> in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
      in.give(this->r, this->user);
      channel.after(this->user);
      channel.all_reduce(in.data(), out.data(), n, this->type, op);
      channel.before(this->user);
      EXPECT_EQ(out.get(this->user), this->mpi_reduced(n, mpi_op)) << n;
      // The channel is called before its input is ready: it must wait for the input by itself.
      in.give(this->r + 1, this->user);
      channel.after(this->user);
      channel.all_reduce(in.data(), in.data(), n, this->type, op);
      channel.wait();
      EXPECT_EQ(in.get(this->user), this->mpi_reduced(n, mpi_op, 1)) << n;
    }
  }
  const int64_t launches = channel.launches();
  channel.all_reduce(nullptr, nullptr, 0, this->type);  // nothing: skipped
  EXPECT_EQ(channel.launches(), launches);
}

TYPED_TEST(NcclCollectives, Gathers) {
  NcclChannel& channel = this->channel();
  for (const NcclChannel::Counts& n : {NcclChannel::Counts(static_cast<size_t>(this->W), 11), this->uneven()}) {
    DeviceBuffer<TypeParam> in(static_cast<size_t>(n[static_cast<size_t>(this->r)])),
        out(static_cast<size_t>(this->sum(n)));
    in.give(this->r, this->user);
    channel.after(this->user);
    channel.all_gather(in.data(), out.data(), n, this->type);
    channel.before(this->user);
    const std::vector<TypeParam> expected = this->mpi_gathered(n);
    EXPECT_EQ(out.get(this->user), expected);
    for (int root = 0; root < this->W; ++root) {
      DeviceBuffer<TypeParam> gathered(static_cast<size_t>(this->sum(n)));
      channel.after(this->user);
      channel.gather(in.data(), gathered.data(), n, this->type, root);
      channel.before(this->user);
      if (this->r == root) {
        EXPECT_EQ(gathered.get(this->user), expected) << root;
      }
    }
  }
}

TYPED_TEST(NcclCollectives, ReduceScatter) {
  NcclChannel& channel = this->channel();
  for (const NcclChannel::Counts& n : {NcclChannel::Counts(static_cast<size_t>(this->W), 11), this->uneven()}) {
    DeviceBuffer<TypeParam> in(static_cast<size_t>(this->sum(n))),
        out(static_cast<size_t>(n[static_cast<size_t>(this->r)]));
    in.give(this->r, this->user);
    channel.after(this->user);
    channel.reduce_scatter(in.data(), out.data(), n, this->type);
    channel.before(this->user);
    EXPECT_EQ(out.get(this->user), this->part(this->mpi_reduced(this->sum(n), MPI_SUM), n));
  }
}

TYPED_TEST(NcclCollectives, BroadcastFromEachRank) {
  for (int root = 0; root < this->W; ++root) {
    DeviceBuffer<TypeParam> data(9);
    data.give(this->r, this->user);
    this->channel().after(this->user);
    this->channel().broadcast(data.data(), 9, this->type, root);
    this->channel().before(this->user);
    std::vector<TypeParam> expected;
    for (int64_t i = 0; i < 9; ++i) expected.push_back(TypeParam(given(root, i)));
    EXPECT_EQ(data.get(this->user), expected) << root;
  }
}

TYPED_TEST(NcclCollectives, AllToAllOfUnevenParts) {
  // Rank a sends (a + 2b) mod 3 elements to rank b, all 10 a + b: some pairs exchange nothing, and so may a whole rank.
  const auto count = [](int from, int to) { return int64_t{(from + 2 * to) % 3}; };
  NcclChannel::Counts send, receive;
  std::vector<TypeParam> out, expected;
  for (int k = 0; k < this->W; ++k) {
    send.push_back(count(this->r, k));
    receive.push_back(count(k, this->r));
    out.insert(out.end(), static_cast<size_t>(send.back()), TypeParam(10 * this->r + k));
    expected.insert(expected.end(), static_cast<size_t>(receive.back()), TypeParam(10 * k + this->r));
  }
  DeviceBuffer<TypeParam> from(out.size()), to(expected.size());
  from.put(out, this->user);
  this->channel().after(this->user);
  this->channel().all_to_all(from.data(), send, to.data(), receive, this->type);
  this->channel().before(this->user);
  EXPECT_EQ(to.get(this->user), expected);
}

TYPED_TEST(NcclCollectives, AGroupIsOneLaunch) {
  NcclChannel& channel = this->channel();
  DeviceBuffer<TypeParam> a(5), b(300), c(static_cast<size_t>(7 * this->W));
  a.give(this->r, this->user);
  b.give(this->r, this->user);
  const int64_t launches = channel.launches();
  channel.after(this->user);
  channel.grouped([&] {
    channel.all_reduce(a.data(), a.data(), 5, this->type);
    channel.all_reduce(b.data(), b.data(), 300, this->type, NcclOp::max);
    channel.grouped([&] {
      channel.all_gather(b.data(), c.data(), NcclChannel::Counts(static_cast<size_t>(this->W), 7), this->type);
    });
  });
  channel.before(this->user);
  EXPECT_EQ(channel.launches(), launches + 1);
  EXPECT_EQ(a.get(this->user), this->mpi_reduced(5, MPI_SUM));
  EXPECT_EQ(b.get(this->user), this->mpi_reduced(300, MPI_MAX));
}

TEST(NcclChannel, ManyLaunchesMayBeInFlight) {
  NcclChannel channel(MPI_COMM_WORLD, 0);
  UserStream user;
  DeviceBuffer<int64_t> x(3);
  x.put({1, 2, 3}, user);
  channel.after(user);
  for (int k = 0; k < 300; ++k) channel.all_reduce(x.data(), x.data(), 3, NcclType::int64, NcclOp::max);
  channel.wait();
  channel.before(user);
  EXPECT_EQ(x.get(user), (std::vector<int64_t>{1, 2, 3}));
  channel.close();
  EXPECT_THROW(channel.all_reduce(x.data(), x.data(), 3, NcclType::int64), Error);
}

TEST(NcclChannel, BucketsOverlapWithTheCallersStreamAndAreJoinedAtTheEnd) {
  NcclChannel channel(MPI_COMM_WORLD, 0);
  UserStream user;
  DeviceBuffer<float> first(1000), second(1000);
  first.give(channel.rank(), user);
  channel.after(user);
  channel.all_reduce(first.data(), first.data(), 1000, NcclType::float32);  // no wait() follows here
  second.give(channel.rank() + 1, user);
  channel.after(user);
  channel.all_reduce(second.data(), second.data(), 1000, NcclType::float32);
  channel.before(user);
  std::vector<float> one(1000, 0), two(1000, 0);
  for (int k = 0; k < channel.size(); ++k) {
    for (size_t i = 0; i < 1000; ++i) {
      one[i] += static_cast<float>(given(k, static_cast<int64_t>(i)));
      two[i] += static_cast<float>(given(k + 1, static_cast<int64_t>(i)));
    }
  }
  EXPECT_EQ(first.get(user), one);
  EXPECT_EQ(second.get(user), two);
  channel.close();
}

TEST(NcclChannel, TheRanksOfAHostHaveAChannelOfTheirOwn) {
  NcclChannel channel(MPI_COMM_WORLD, 0);
  const std::unique_ptr<NcclChannel> node = channel.split_node();
  EXPECT_EQ(node->size(), channel.size());  // the tests run on one host
  EXPECT_EQ(node->rank(), channel.rank());
  UserStream user;
  DeviceBuffer<double> x(4), y(4);
  x.give(channel.rank(), user);
  y.give(channel.rank(), user);
  channel.after(user);
  node->after(user);
  channel.all_reduce(x.data(), x.data(), 4, NcclType::float64);
  channel.before(user);
  node->all_reduce(y.data(), y.data(), 4, NcclType::float64);
  node->before(user);
  EXPECT_EQ(x.get(user), y.get(user));
  node->close();
  channel.close();
}

TEST(NcclChannel, AnAbortedChannelThrowsAndANewOneWorks) {
  {
    NcclChannel channel(MPI_COMM_WORLD, 0);
    DeviceBuffer<float> x(4);
    channel.abort();
    channel.abort();
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { channel.all_reduce(x.data(), x.data(), 4, NcclType::float32); }, [&] { channel.wait(); },
             [&] { channel.after(nullptr); }, [&] { channel.split_node(); }}) {
      try {
        use();
        ADD_FAILURE() << "a use after abort was accepted";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Exit::lost);
        EXPECT_STREQ(e.what(), "this channel was aborted");
      }
    }
    EXPECT_FALSE(channel.oldest_waiting());
  }
  NcclChannel(MPI_COMM_WORLD, 0).close();
}

// ---- a rank that is missing --------------------------------------------------------------------------------------
class NcclMissing : public testing::Test {
 protected:
  std::string told;  // by the channel's thread, before the host's wait ends
  NcclOptions options() {
    NcclOptions o;
    o.seconds = 1.2;
    o.on_failure = [this](const std::string& sentence) { told = sentence; };
    return o;
  }
  // All ranks reach the first launch, all but the last reach the second.
  void go_without_the_last(NcclChannel& channel, DeviceBuffer<float>& x, UserStream& user) {
    x.give(channel.rank(), user);
    channel.after(user);
    channel.all_reduce(x.data(), x.data(), 8, NcclType::float32);
    channel.wait();
    if (channel.rank() != channel.size() - 1) channel.all_reduce(x.data(), x.data(), 4, NcclType::float32);
  }
  void expect_named(const std::string& sentence, int last) {
    EXPECT_NE(sentence.find("rank " + std::to_string(last) +
                            " has not reached it, last at launch 1 (all_reduce of 8 float32)"),
              std::string::npos)
        << sentence;
    EXPECT_NE(sentence.find("in NCCL launch 2 (all_reduce of 4 float32)"), std::string::npos) << sentence;
  }
};

TEST_F(NcclMissing, IsNamedAtTheDeadlineByTheWaitingRanks) {
  NcclChannel channel(MPI_COMM_WORLD, 0, options());
  if (channel.size() == 1) return channel.close();
  UserStream user;
  DeviceBuffer<float> x(8);
  go_without_the_last(channel, x, user);
  const auto begin = std::chrono::steady_clock::now();
  const int last = channel.size() - 1;
  if (channel.rank() != last) {
    try {
      channel.wait();
      ADD_FAILURE() << "no missing rank was reported";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::lost);
      expect_named(e.what(), last);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(seconds.count(), 4.0);
    EXPECT_GT(seconds.count(), 1.1);
    EXPECT_THROW(channel.all_reduce(x.data(), x.data(), 4, NcclType::float32), Error);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(NcclMissing, ReleasesAHostThreadThatWaitsForTheDevice) {
  NcclChannel channel(MPI_COMM_WORLD, 0, options());
  if (channel.size() == 1) return channel.close();
  UserStream user;
  DeviceBuffer<float> x(8);
  go_without_the_last(channel, x, user);
  const int last = channel.size() - 1;
  if (channel.rank() != last) {
    PAL_CUDA_CHECK(
        cudaStreamSynchronize(channel.stream()));  // as LibTorch's item() does: no call of ours looks at a clock
    EXPECT_THROW(channel.before(user), Error);
    for (int k = 0; k < 100 && told.empty(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    expect_named(told, last);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(NcclMissing, TheWatchdogGetsTheStartOfTheOldestLaunch) {
  NcclChannel channel(MPI_COMM_WORLD, 0);
  if (channel.size() == 1) return channel.close();
  DeviceBuffer<float> x(4);
  PAL_CUDA_CHECK(cudaMemset(x.data(), 0, 16));
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  const bool late = channel.rank() == channel.size() - 1;
  if (late) std::this_thread::sleep_for(std::chrono::milliseconds(1600));
  const auto begin = std::chrono::steady_clock::now();
  channel.all_reduce(x.data(), x.data(), 4, NcclType::float32);
  if (!late) {
    EXPECT_FALSE(channel.oldest_waiting());
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    const auto since = channel.oldest_waiting();
    ASSERT_TRUE(since);
    EXPECT_LT(std::chrono::abs(*since - begin), std::chrono::milliseconds(200));
  }
  channel.wait();
  // The guard thread looks every 50 ms.
  for (int k = 0; k < 200 && channel.oldest_waiting(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(channel.oldest_waiting());
  channel.close();
}

TEST(NcclStart, AllRanksNameARankWithAnotherVersion) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  if (world_rank() == 1) setenv("SIMNCCL_VERSION", "22805", 1);
  try {
    NcclChannel channel(MPI_COMM_WORLD, 0);
    ADD_FAILURE() << "two versions of NCCL were accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    EXPECT_NE(std::string(e.what()).find("rank 0 2.29.7, rank 1 on host"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("2.28.5"), std::string::npos) << e.what();
  }
  unsetenv("SIMNCCL_VERSION");
}

}  // namespace
}  // namespace pal::dist
