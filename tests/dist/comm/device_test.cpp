// device: which device a rank takes, and the errors for devices that do not fit together; rank_status: missing ranks.
#include "dist/comm/device.h"

#include <gtest/gtest.h>

#include "dist/comm/rank_status.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

// Hosts a and b with `per_host` ranks each, each seeing `visible` devices.
std::vector<FoundDevices> ranks_of(int per_host, int visible) {
  std::vector<FoundDevices> ranks;
  for (const char* host : {"a", "b"}) {
    for (int k = 0; k < per_host; ++k) {
      ranks.push_back({host, k, visible, visible > 0 ? "" : "no NVIDIA driver on this machine",
                       "0000:0" + std::to_string(device_of(k, visible)) + ":00.0", 22907});
    }
  }
  return ranks;
}

std::string refusal(const std::string& asked, const std::vector<FoundDevices>& ranks) {
  std::string first;
  for (size_t r = 0; r < ranks.size(); ++r) {
    try {
      decide_device(asked, ranks, static_cast<int>(r));
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
      if (r == 0) first = e.what();
      EXPECT_EQ(first, e.what()) << "every rank makes the same decision";
    }
  }
  return first;
}

TEST(Device, LocalRankModuloVisible) {
  EXPECT_EQ(device_of(0, 4), 0);
  EXPECT_EQ(device_of(3, 4), 3);
  EXPECT_EQ(device_of(5, 4), 1);
  EXPECT_EQ(device_of(3, 1), 0);  // srun --gpus-per-task=1: each process sees only its own device
  EXPECT_EQ(device_of(2, 0), -1);
}

TEST(Device, AutoTakesTheGpusWhenEachRankHasOne) {
  const auto ranks = ranks_of(4, 4);
  for (int r = 0; r < 8; ++r) {
    const DeviceDecision d = decide_device("auto", ranks, r);
    EXPECT_EQ(d.kind, DeviceKind::cuda);
    EXPECT_EQ(d.ordinal, r % 4);
    EXPECT_NE(d.why.find("PCI 0000:0" + std::to_string(r % 4)), std::string::npos) << d.why;
  }
  EXPECT_EQ(decide_device("cuda", ranks, 6).ordinal, 2);
  EXPECT_EQ(decide_device("cpu", ranks, 6).kind, DeviceKind::cpu);
  EXPECT_EQ(decide_device("cpu", ranks, 6).why, "train.device=cpu");
  EXPECT_EQ(decide_device("cpu", ranks, 6, "--device").why, "--device=cpu");
}

TEST(Device, AutoTakesTheCpuOnAllRanksWithAReason) {
  const auto ranks = ranks_of(2, 0);
  for (int r = 0; r < 4; ++r) {
    const DeviceDecision d = decide_device("auto", ranks, r);
    EXPECT_EQ(d.kind, DeviceKind::cpu);
    EXPECT_EQ(d.why, "rank 0 on host a has no CUDA device: no NVIDIA driver on this machine");
  }
}

TEST(Device, AutoDoesNotMoveAJobToCpusBecauseOfOneRank) {
  auto broken = ranks_of(2, 2);
  broken[3].visible = 0;
  broken[3].reason = "no NVIDIA driver on this machine";
  EXPECT_NE(refusal("auto", broken).find("rank 3 on host b has no CUDA device"), std::string::npos);
  EXPECT_NE(refusal("auto", broken).find("set train.device=cpu"), std::string::npos);
  auto mixed = ranks_of(2, 2);
  mixed[2].nccl = 22805;
  EXPECT_NE(refusal("auto", mixed).find("different versions of NCCL"), std::string::npos);
  auto same_name = ranks_of(2, 2);  // containers whose hosts have one name
  for (FoundDevices& rank : same_name) rank.host = "localhost";
  EXPECT_NE(refusal("auto", same_name).find("would share the device"), std::string::npos);
}

TEST(Device, NoDriverIsRefusedWhenCudaIsAsked) {
  const std::string text = refusal("cuda", ranks_of(2, 0));
  EXPECT_NE(text.find("rank 0 on host a has no CUDA device: no NVIDIA driver on this machine"), std::string::npos)
      << text;
  EXPECT_NE(text.find("set train.device=cpu"), std::string::npos) << text;
  try {
    decide_device("cuda", ranks_of(2, 0), 0, "--device");
    FAIL() << "no driver, and no refusal";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--device is: cuda; set --device=cpu"), std::string::npos) << e.what();
  }
}

TEST(Device, FewerDevicesThanRanks) {
  const std::string text = refusal("cuda", ranks_of(3, 2));
  EXPECT_NE(text.find("ranks 0 and 2 would share the device at 0000:00:00.0 on host a: it has 3 ranks and 2 visible "
                      "device(s); start at most"),
            std::string::npos)
      << text;
  auto one_machine = ranks_of(3, 2);
  one_machine.resize(3);
  EXPECT_EQ(decide_device("auto", one_machine, 0).kind, DeviceKind::cpu);
  EXPECT_NE(refusal("auto", ranks_of(3, 2)), "");
}

TEST(Device, TwoRanksOnOneDeviceAreRefused) {
  auto ranks = ranks_of(2, 2);
  ranks[3].bus = ranks[2].bus;  // lists of CUDA_VISIBLE_DEVICES that begin with the same device
  const std::string text = refusal("cuda", ranks);
  EXPECT_NE(
      text.find("ranks 2 and 3 would share the device at 0000:00:00.0 on host b; let every rank of a host see all"),
      std::string::npos)
      << text;
}

TEST(Device, TheSameAddressOnTwoHostsIsAllowed) { EXPECT_EQ(device_conflict(ranks_of(2, 2)), ""); }

TEST(Device, DifferentVersionsOfNcclAreNamed) {
  auto ranks = ranks_of(2, 2);
  ranks[2].nccl = 22805;
  const std::string text = refusal("cuda", ranks);
  EXPECT_NE(text.find("rank 0 2.29.7, rank 2 on host b 2.28.5"), std::string::npos) << text;
}

// ---- who is missing -------------------------------------------------------------------------------------------------
LaunchStatus status(int64_t number, const char* what) {
  LaunchStatus p;
  p.number = number;
  std::snprintf(p.what, sizeof(p.what), "%s", what);
  return p;
}

TEST(RankStatusChannel, NamesEndedLateAndDifferingRanks) {
  const LaunchStatus here = status(7, "all_reduce of 8 float32");
  EXPECT_EQ(describe_missing({here, std::nullopt, here}, 0, 10),
            "rank 0 has waited 10.0 s in NCCL launch 7 (all_reduce of 8 float32); rank 1 does not reply: "
            "ended, stopped, or its host is unreachable");
  EXPECT_EQ(
      describe_missing({status(6, "broadcast of 1 int64"), here, status(6, "broadcast of 1 int64")}, 1, 10),
      "rank 1 has waited 10.0 s in NCCL launch 7 (all_reduce of 8 float32); ranks 0, 2 have not reached it, last at "
      "launch 6 (broadcast of 1 int64)");
  EXPECT_EQ(describe_missing({here, status(7, "all_reduce of 9 float32")}, 0, 10),
            "rank 0 has waited 10.0 s in NCCL launch 7 (all_reduce of 8 float32); rank 1 has a different launch of "
            "this number "
            "(all_reduce of 9 float32)");
  EXPECT_NE(describe_missing({here, status(9, "x")}, 0, 10).find("all ranks are in it"), std::string::npos);
  EXPECT_EQ(describe_missing({here, status(9, "x")}, 0, 10).find("train.start_seconds"), std::string::npos);
  const LaunchStatus start = status(0, "start");
  EXPECT_NE(describe_missing({start, std::nullopt}, 0, 10).find("raise train.start_seconds"), std::string::npos);
}

}  // namespace
}  // namespace pal::dist
