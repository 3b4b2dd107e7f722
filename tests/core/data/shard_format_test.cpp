// shard_format: shards that other programs wrote, right and wrong ones, made through HDF5's own interface.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "core/data/dataset.h"
#include "core/io/crc32c.h"
#include "core/io/h5.h"
#include "tests/core/data/data_files.h"

namespace pal::data {
namespace {

// A file of three 1 × 2 gray images, made as h5py would make it; `leave_out` and the fields make it wrong.
struct Handmade {
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  std::vector<uint64_t> offsets = {0, 2, 4, 6};
  std::vector<int64_t> labels = {0, 1, -1};
  std::vector<std::string> classes = {"a", "b"};
  std::vector<std::string> ids = {"x", "yy", "z"};
  std::vector<int64_t> parents;
  std::vector<int64_t> shape = {1, 2, 1};
  std::vector<int64_t> format = {1};
  std::string encoding = "raw";
  std::string leave_out;

  void write(const std::string& path) const {
    io::h5::File file = io::h5::File::create(path);
    if (leave_out != "pal_format") file.set_integers("/", "pal_format", format);
    if (leave_out != "encoding") file.set_text("/", "encoding", encoding);
    if (leave_out != "shape") file.set_integers("/", "shape", shape);
    file.make_group("images");
    std::vector<uint32_t> crcs;
    for (size_t i = 0; i < 3; ++i) crcs.push_back(io::crc32c(bytes.data() + 2 * i, 2));
    if (leave_out != "images/bytes") file.write("images/bytes", bytes);
    if (leave_out != "images/offsets") file.write("images/offsets", offsets);
    if (leave_out != "images/crc32c") file.write("images/crc32c", crcs);
    if (leave_out != "labels") file.write("labels", labels);
    if (leave_out != "classes") file.write_text("classes", classes);
    if (leave_out != "ids") file.write_text("ids", ids);
    if (!parents.empty()) file.write("parents", parents);
    file.close();
  }
};

class ShardFormat : public ::testing::Test {
 protected:
  std::string open_error() {
    return error_of(Exit::data, [&] { Dataset::open(path_); });
  }
  // Opens the hand-made file once more through HDF5 itself, to add what our wrapper does not write.
  void with_hdf5(const Handmade& made, const std::function<void(hid_t)>& change) {
    made.write(path_);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    change(file);
    H5Fclose(file);
  }
  // Adds /labels with the given stored type and layout.
  void with_labels(hid_t type, int rank, const hsize_t* dims, const std::function<void(hid_t)>& creation = {}) {
    Handmade made;
    made.leave_out = "labels";
    with_hdf5(made, [&](hid_t file) {
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
      if (creation) creation(list);
      const hid_t space = H5Screate_simple(rank, dims, nullptr);
      const hid_t dataset = H5Dcreate2(file, "labels", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
      const int64_t values[3] = {0, 1, -1};
      H5E_BEGIN_TRY {  // a virtual data set takes no values
        H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
      }
      H5E_END_TRY
      H5Dclose(dataset);
      H5Sclose(space);
      H5Pclose(list);
    });
  }

  TestFolder folder_;
  std::string path_ = folder_ / "f.h5";
  const hsize_t three_[1] = {3};
};

TEST_F(ShardFormat, AFileWithoutChecksumAttributesIsRead) {
  Handmade().write(path_);
  const auto data = Dataset::open(path_);
  EXPECT_EQ(data->labels(), (std::vector<int64_t>{0, 1, -1}));
  EXPECT_EQ(data->id(1), "yy");
  std::vector<uint8_t> bytes;
  data->read(2, bytes);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{5, 6}));
}

TEST_F(ShardFormat, TextOfVariableLengthAndSmallIntegersAreReadAsAttributes) {  // as h5py writes them
  Handmade made;
  made.leave_out = "encoding";
  with_hdf5(made, [](hid_t file) {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute = H5Acreate2(file, "encoding", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char* value = "raw";
    H5Awrite(attribute, type, &value);
    H5Aclose(attribute);
    H5Adelete(file, "pal_format");
    const hid_t small = H5Acreate2(file, "pal_format", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT);
    const uint8_t one = 1;
    H5Awrite(small, H5T_NATIVE_UINT8, &one);
    H5Aclose(small);
    H5Sclose(space);
    H5Tclose(type);
  });
  EXPECT_EQ(Dataset::open(path_)->size(), 3);
}

TEST_F(ShardFormat, MissingPartsAreNamed) {
  for (const char* name :
       {"pal_format", "encoding", "shape", "images/bytes", "images/offsets", "images/crc32c", "classes"}) {
    Handmade made;
    made.leave_out = name;
    made.write(path_);
    const std::string error = open_error();
    EXPECT_TRUE(contains(error, "f.h5") && contains(error, name)) << name << ": " << error;
  }
  for (const char* name : {"labels", "ids"}) {
    Handmade made;
    made.leave_out = name;
    made.write(path_);
    EXPECT_EQ(open_error(), "") << name;
  }
  std::filesystem::remove(path_);
  EXPECT_TRUE(contains(open_error(), "this data set does not exist"));
  write_file(path_, "not HDF5 at all");
  EXPECT_TRUE(contains(open_error(), "f.h5 is not a complete HDF5 file: file signature not found")) << open_error();
}

TEST_F(ShardFormat, WrongValuesAreRefused) {
  const std::vector<std::pair<std::string, std::function<void(Handmade&)>>> cases = {
      {"pal_format 2 is not supported", [](Handmade& m) { m.format = {2}; }},
      {"encoding tiff is not supported", [](Handmade& m) { m.encoding = "tiff"; }},
      {"shape has 2 numbers",
       [](Handmade& m) {
         m.shape = {1, 2};
       }},
      {"impossible value 0",
       [](Handmade& m) {
         m.shape = {0, 2, 1};
       }},
      {"impossible value -1",
       [](Handmade& m) {
         m.shape = {-1, 2, -1};
       }},
      {"impossible value 4294967297",
       [](Handmade& m) {
         m.shape = {4294967297, 2, 1};
       }},
      {"has 2 bytes",
       [](Handmade& m) {
         m.shape = {1, 3, 1};
       }},
      {"offsets has length 3",
       [](Handmade& m) {
         m.offsets = {0, 2, 6};
       }},
      {"begins with 1 instead of 0",
       [](Handmade& m) {
         m.offsets = {1, 2, 4, 6};
       }},
      {"ends with 7",
       [](Handmade& m) {
         m.offsets = {0, 2, 4, 7};
       }},
      {"does not ascend at sample 1",
       [](Handmade& m) {
         m.offsets = {0, 4, 2, 6};
         m.encoding = "jpeg";
       }},
      {"does not ascend at sample 2",
       [](Handmade& m) {
         m.offsets = {0, 2, ~uint64_t{0} - 3, 6};
         m.encoding = "jpeg";
       }},
      {"sample 1 has label 2, but there are 2 classes",
       [](Handmade& m) {
         m.labels = {0, 2, -1};
       }},
      {"sample 2 has label -2",
       [](Handmade& m) {
         m.labels = {0, 1, -2};
       }},
      {"labels has length 2",
       [](Handmade& m) {
         m.labels = {0, 1};
       }},
      {"ids has length 2",
       [](Handmade& m) {
         m.ids = {"x", "y"};
       }},
      {"two classes have the same name",
       [](Handmade& m) {
         m.classes = {"a", "a"};
       }},
      {"parents has length 1", [](Handmade& m) { m.parents = {-1}; }},
      {"parents holds the impossible entry 1",
       [](Handmade& m) {
         m.parents = {1, -1};
       }},
      {"parents holds the impossible entry 3",
       [](Handmade& m) {
         m.parents = {2, 3, -1};
       }},
      {"parents has a cycle",
       [](Handmade& m) {
         m.parents = {2, 3, 3, 2};
       }},
  };
  for (const auto& [expected, change] : cases) {
    Handmade made;
    change(made);
    made.write(path_);
    const std::string error = open_error();
    EXPECT_TRUE(contains(error, expected) && contains(error, "f.h5")) << expected << ": " << error;
  }
}

TEST_F(ShardFormat, WrongTypesAndShapesAreRefused) {
  with_labels(H5T_STD_I64LE, 1, three_);
  EXPECT_EQ(open_error(), "");
  for (const hid_t type : {H5T_STD_I32LE, H5T_STD_U64LE, H5T_IEEE_F64LE, H5T_STD_I64BE}) {
    with_labels(type, 1, three_);
    EXPECT_TRUE(contains(open_error(), "f.h5: data set labels has the wrong type; it must be int64")) << open_error();
  }
  const hsize_t column[2] = {3, 1};
  with_labels(H5T_STD_I64LE, 2, column);
  EXPECT_TRUE(contains(open_error(), "data set labels has the wrong shape")) << open_error();
}

TEST_F(ShardFormat, OtherLayoutsAreRefused) {
  with_labels(H5T_STD_I64LE, 1, three_, [&](hid_t list) {
    H5Pset_chunk(list, 1, three_);
    H5Pset_fletcher32(list);
  });
  EXPECT_TRUE(contains(open_error(), "data set labels has a filter")) << open_error();
  with_labels(H5T_STD_I64LE, 1, three_, [&](hid_t list) { H5Pset_chunk(list, 1, three_); });
  EXPECT_TRUE(contains(open_error(), "data set labels is not contiguous")) << open_error();
  with_labels(H5T_STD_I64LE, 1, three_,
              [&](hid_t list) { H5Pset_external(list, (folder_ / "raw.bin").c_str(), 0, 24); });
  EXPECT_TRUE(contains(open_error(), "data set labels is stored in another file")) << open_error();
  with_labels(H5T_STD_I64LE, 1, three_, [&](hid_t list) {
    const hid_t space = H5Screate_simple(1, three_, nullptr);
    H5Pset_virtual(list, space, "other.h5", "labels", space);
    H5Sclose(space);
  });
  EXPECT_TRUE(contains(open_error(), "data set labels is virtual")) << open_error();
}

TEST_F(ShardFormat, LinksToElsewhereAreRefused) {
  Handmade made;
  Handmade().write(folder_ / "other.h5");
  made.leave_out = "labels";
  with_hdf5(made,
            [](hid_t file) { H5Lcreate_external("other.h5", "/labels", file, "labels", H5P_DEFAULT, H5P_DEFAULT); });
  EXPECT_TRUE(contains(open_error(), "f.h5: labels is a link to another place")) << open_error();
  with_hdf5(made, [](hid_t file) { H5Lcreate_soft("/ids", file, "labels", H5P_DEFAULT, H5P_DEFAULT); });
  EXPECT_TRUE(contains(open_error(), "labels is a link to another place")) << open_error();
  // A whole group in another file.
  with_hdf5(Handmade(), [](hid_t file) {
    H5Ldelete(file, "images", H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(open_error(), "images is a link to another place")) << open_error();
}

TEST_F(ShardFormat, AnArrayThatWasNeverWrittenIsRefused) {  // HDF5 itself would read it as zeros, however long it is
  Handmade made;
  made.leave_out = "labels";
  with_hdf5(made, [](hid_t file) {
    const hsize_t huge[1] = {hsize_t{1} << 40};
    const hid_t space = H5Screate_simple(1, huge, nullptr);
    H5Dclose(H5Dcreate2(file, "labels", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  EXPECT_TRUE(contains(open_error(), "the bytes of data set labels are not in the file")) << open_error();
}

// Sparse files, whose length costs nothing on the disk.
TEST_F(ShardFormat, WhatDoesNotFitIntoTheMemoryIsRefused) {
  const int64_t count = int64_t{1} << 39;
  const auto extend = [&] { std::filesystem::resize_file(path_, io::h5::kHeadBytes + (uint64_t{8} << 39)); };
  {
    io::h5::File file = io::h5::File::create(path_);
    file.describe("numbers", io::h5::Type::u64, count, 8);
    file.close();
  }
  extend();
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { io::h5::File::open(path_).read<uint64_t>("numbers"); }),
                       "f.h5 needs more memory than is free: 4398.0 GB"));
  {
    io::h5::File file = io::h5::File::create(path_);
    file.describe("texts", io::h5::Type::text, count, 1);
    file.close();
  }
  extend();
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { io::h5::File::open(path_).read_text("texts"); }),
                       "f.h5 needs more memory than is free: "));
  {
    io::h5::File file = io::h5::File::create(path_);
    file.set_integers("/", "pal_format", {1});
    file.set_text("/", "encoding", "jpeg");
    file.set_integers("/", "shape", {0, 0, 3});
    file.make_group("images");
    file.write("images/offsets", std::vector<uint64_t>{0, uint64_t{1} << 39});
    file.write("images/crc32c", std::vector<uint32_t>{0});
    file.describe("images/bytes", io::h5::Type::u8, count, 1);
    file.close();
  }
  extend();
  EXPECT_TRUE(contains(open_error(), "sample 0 has 549755813888 bytes; an image has at most 2 GB")) << open_error();
}

TEST_F(ShardFormat, HDF5PrintsNothing) {
  write_file(path_, "not HDF5 at all");
  ::testing::internal::CaptureStderr();
  open_error();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace pal::data
