#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/io/crc32c.h"
#include "core/record/metrics.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

// Fields of tensorflow's event.proto and summary.proto.
enum Field : uint32_t {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7,
  kSummaryValue = 1,
  kTag = 1,
  kSimpleValue = 2,
  kStatus = 1
};
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
void put_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));  // the formats are little-endian, as we are
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint32_t field, WireType type) { put_varint(out, field << 3 | type); }

void put_bytes(std::string& out, uint32_t field, const std::string& bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(int64_t step) {
  std::string event;
  put_key(event, kWallTime, kFixed64);
  put_raw(event, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  put_key(event, kStep, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

std::string tensorboard_record(const std::string& event) {
  std::string out;
  put_raw(out, static_cast<uint64_t>(event.size()));
  put_raw(out, masked(io::crc32c(out.data(), sizeof(uint64_t))));
  out += event;
  put_raw(out, masked(io::crc32c(event.data(), event.size())));
  return out;
}

TensorboardWriter::TensorboardWriter(std::string folder, int64_t first_step)
    : folder_(std::move(folder)), first_step_(first_step) {}

TensorboardWriter::~TensorboardWriter() {
  if (file_ >= 0) close(file_);
}

void TensorboardWriter::open() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  // TensorBoard reads files in the order of their names.
  path_ = folder_ + "/events.out.tfevents." + std::to_string(now) + "." + host + "." + std::to_string(getpid());
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  PAL_CHECK(file_ >= 0, "cannot write " + path_, std::strerror(errno), "choose a run folder you may write to");
  std::string version = event_head(0);
  put_bytes(version, kFileVersion, "brain.Event:2");
  record(version);
  if (first_step_ == 0) return;
  std::string log, start = event_head(first_step_ + 1);
  put_key(log, kStatus, kVarint);
  put_varint(log, 1);  // START
  put_bytes(start, kSessionLog, log);
  record(start);
}

void TensorboardWriter::write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  if (file_ < 0) open();
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_key(value, kSimpleValue, kFixed32);
    put_raw(value, static_cast<float>(number));
    put_bytes(summary, kSummaryValue, value);
  }
  std::string event = event_head(step);
  put_bytes(event, kSummary, summary);
  record(event);
}

// In one call, so that a reader sees whole records.
void TensorboardWriter::record(const std::string& event) {
  const std::string bytes = tensorboard_record(event);
  ssize_t done = 0;
  do {
    done = ::write(file_, bytes.data(), bytes.size());
  } while (done < 0 && errno == EINTR);
  PAL_CHECK(done == static_cast<ssize_t>(bytes.size()), "cannot write " + path_,
            done < 0 ? std::strerror(errno) : "the disk is full", "make room on the disk");
}

}  // namespace pal::record
