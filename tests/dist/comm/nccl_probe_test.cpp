// nccl_probe: the table of `pal doctor`, on the stand-ins: every sum is checked, and a wrong one is counted.
#include "dist/comm/nccl_probe.h"

#include <gtest/gtest.h>

namespace pal::dist {
namespace {

TEST(NcclProbe, SumsAreRightAtEverySize) {
  NcclChannel channel(MPI_COMM_WORLD, 0);
  NcclProbeOptions options;
  options.most_bytes = 4096;
  options.warmup = 1;
  options.repeats = 2;
  const std::vector<ProbeRow> rows = probe_all_reduce(channel, MPI_COMM_WORLD, options);
  ASSERT_EQ(rows.size(), 5u);  // 8, 32, 128, 512, 2048
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_EQ(rows[4].bytes, 2048);
  EXPECT_TRUE(probe_passed(rows));
  for (const ProbeRow& r : rows) EXPECT_GT(r.out_of_place.seconds, 0);
  const auto table = probe_table(rows, channel.size());
  EXPECT_EQ(table.size(), 6u);
  for (const auto& line : table) EXPECT_EQ(line.size(), table[0].size());
  EXPECT_EQ(device_table().size(), 2u);  // a header and the one device
  channel.close();
}

TEST(NcclProbe, AWrongElementIsCountedAndReported) {
  std::vector<float> got;
  for (int64_t i = 0; i < 300; ++i) got.push_back(probe_given(0, i) + probe_given(1, i) + probe_given(2, i));
  EXPECT_EQ(count_wrong(got, 3), 0);
  got[7] += 1;
  got[299] = 0;
  EXPECT_EQ(count_wrong(got, 3), 2);
  ProbeRow row;
  row.bytes = 1 << 20;
  row.out_of_place = row.in_place = {1e-3, 0};
  EXPECT_TRUE(probe_passed({row}));
  EXPECT_NE(probe_verdict({row}, 4).find("are right between 4 devices; at best 1.6 GB/s"), std::string::npos)
      << probe_verdict({row}, 4);
  row.in_place.wrong = 2;
  EXPECT_FALSE(probe_passed({row}));
  EXPECT_NE(probe_verdict({row}, 4).find("wrong sums on this machine: 2 elements"), std::string::npos);
}

TEST(NcclProbe, BandwidthsAsNcclTestsHasThem) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000'000, 0.5), 2);
  EXPECT_DOUBLE_EQ(bus_bandwidth(1'000'000'000, 0.5, 8), 2 * 2 * 7.0 / 8);
  EXPECT_DOUBLE_EQ(bus_bandwidth(1'000'000'000, 0.5, 1), 0);
}

}  // namespace
}  // namespace pal::dist
