// safetensors: round trip of every type; the format byte by byte; malformed files, each refused with a reason.
#include "core/io/safetensors.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/io/sha256.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::io {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string path() const { return folder_ / "x.safetensors"; }
  std::string with_bytes(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }
  // A file with this header and so many bytes of data.
  std::string with_header(const std::string& header, size_t data_bytes) const {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return with_bytes(bytes + header + std::string(data_bytes, '\1'));
  }

  TestFolder folder_;
};

TEST_F(Safetensors, RoundTripsEveryType) {
  at::manual_seed(1);
  const at::Tensor base = at::randn({3, 5}, at::kDouble).mul(100);
  ops::NamedTensors tensors = {{"scalar", at::tensor(7, at::kLong).reshape({})}, {"empty", at::zeros({0, 4})}};
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kByte, at::kBFloat16, at::kHalf})
    tensors.emplace_back(std::string("of ") + c10::toString(type), base.abs().clamp_max(255).to(type));
  tensors.emplace_back("not contiguous", base.t());
  const std::string hash = write_safetensors(path(), tensors, {{"format", "pt"}});
  EXPECT_EQ(hash, sha256_file(path()));
  const SafetensorsFile file = read_safetensors(path());
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    EXPECT_EQ(file.tensors.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(file.tensors.at(name), tensor));
  }
}

TEST_F(Safetensors, TheFormatIsTheDocumentedOne) {
  write_safetensors(path(), {{"b", at::tensor({1.f, 2.f})}, {"n", at::tensor(3, at::kLong).reshape({1})}}, {});
  const std::string bytes = read_whole_file(path());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["n"], (nlohmann::json{{"dtype", "I64"}, {"shape", {1}}, {"data_offsets", {0, 8}}}));
  EXPECT_EQ(header["b"], (nlohmann::json{{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {8, 16}}}));
  const float expected[2] = {1, 2};
  EXPECT_EQ(bytes.substr(8 + length + 8), std::string(reinterpret_cast<const char*>(expected), 8));
  write_safetensors(path(), {}, {});
  EXPECT_TRUE(read_safetensors(path()).tensors.empty());
}

TEST_F(Safetensors, MalformedFilesAreRefused) {
  const std::string t = R"("dtype":"F32","shape":[2])";
  struct Case {
    std::string header;
    size_t data;
    std::string reason;  // part of the sentence
  };
  const Case cases[] = {
      {R"({"a":{)" + t + R"(,"data_offsets":[0,9]}})", 9, "fit its shape"},
      {R"({"a":{)" + t + R"(,"data_offsets":[8,0]}})", 8, "fit its shape"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8]}})", 7, "beyond the file"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8]}})", 9, "belong to no tensor"},
      {R"({"a":{)" + t + R"(,"data_offsets":[4,12]}})", 12, "was due"},
      {R"({"a":{)" + t + R"(,"data_offsets":[18446744073709551612,4]}})", 8, "fit its shape"},
      {R"({"a":{)" + t + R"(,"data_offsets":[18446744073709551608,18446744073709551616]}})", 8, "two counts"},
      {R"({"a":{)" + t + R"(,"data_offsets":[-8,0]}})", 8, "two counts"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0.0,8.0]}})", 8, "two counts"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8,16]}})", 8, "two counts"},
      {R"({"a":{)" + t + R"(,"data_offsets":"0,8"}})", 8, "two counts"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8]},"b":{)" + t + R"(,"data_offsets":[4,12]}})", 12, "was due"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8]},"b":{)" + t + R"(,"data_offsets":[12,20]}})", 20, "was due"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8]},"a":{)" + t + R"(,"data_offsets":[8,16]}})", 16, "comes twice"},
      {R"({"a":{)" + t + R"(,"shape":[1],"data_offsets":[0,8]}})", 8, "comes twice"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "counted"},
      {R"({"a":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", 0, "counted"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8, "not a count"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "not a count"},
      {R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", 8, "not a count"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8, "not a list"},
      {R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8, "unknown type"},
      {R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", 8, "unknown type"},
      {R"({"a":{)" + t + R"(}})", 8, "exactly"},
      {R"({"a":{)" + t + R"(,"data_offsets":[0,8],"code":1}})", 8, "exactly"},
      {R"({"a":[0,8]})", 8, "exactly"},
      {R"({"__metadata__":{"k":1}})", 0, "other than text"},
      {R"({"__metadata__":[]})", 0, "not an object"},
      {R"([])", 0, "not a JSON object"},
      {R"({"a":)", 0, "not JSON"},
      {std::string("{\"\xff\":1}"), 0, "not JSON"},
      {std::string(100000, '['), 0, "not a JSON object"},
      {R"({"a":)" + std::string(100000, '['), 0, "nested deeper"},
      {R"({"a":{"dtype":)" + std::string(400000, '[') + std::string(400000, ']') +
           R"(,"shape":[2],"data_offsets":[0,8]}})",
       8, "nested deeper"},
      {R"({"__metadata__":{"k":)" + std::string(400000, '[') + std::string(400000, ']') + "}}", 0, "nested deeper"},
      {"", 0, "not a JSON object"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header.substr(0, 200));
    try {
      read_safetensors(with_header(c.header, c.data));
      ADD_FAILURE() << "was read";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::data);
      EXPECT_NE(std::string(e.what()).find(c.reason), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(path()), std::string::npos) << e.what();
    }
  }
}

// A sparse file: its length costs nothing on the disk.
TEST_F(Safetensors, MoreThanTheFreeMemoryIsRefused) {
  const uint64_t bytes = uint64_t{3} << 40;
  const std::string header = R"({"a":{"dtype":"F32","shape":[)" + std::to_string(bytes / 4) +
                             R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  std::filesystem::resize_file(with_header(header, 0), 8 + header.size() + bytes);
  try {
    read_safetensors(path());
    ADD_FAILURE() << "was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data);
    EXPECT_NE(std::string(e.what()).find(path() + " needs more memory than is free: 3298.5 GB; "), std::string::npos)
        << e.what();
  }
}

TEST_F(Safetensors, WrongLengthsAreRefused) {
  const auto refused = [&](const std::string& bytes) { EXPECT_THROW(read_safetensors(with_bytes(bytes)), Error); };
  refused("");
  refused("1234567");
  refused(std::string(8, '\xff'));                             // 2^64 − 1
  refused(std::string("\x00\xe1\xf5\x05\0\0\0\0", 8) + "{}");  // 100 MB in a file of ten bytes
  refused(std::string("\x03\0\0\0\0\0\0\0", 8) + "{}");
  EXPECT_THROW(read_safetensors(folder_ / "absent"), Error);
  // A good file cut anywhere.
  write_safetensors(path(), {{"a", at::tensor({1.f, 2.f})}}, {});
  const std::string good = read_whole_file(path());
  for (size_t n = 0; n < good.size(); ++n) refused(good.substr(0, n));
}

}  // namespace
}  // namespace pal::io
