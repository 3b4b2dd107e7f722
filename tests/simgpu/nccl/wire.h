// wire: messages between the ranks of an MPI job, used by the communicators of the stand-in.
//
// Every message goes from point to point over MPI_COMM_WORLD with a tag of the communicator's own: nothing here is a
// collective of MPI, so that a missing rank leaves the others waiting as NCCL would, until an abort.
// Thread: MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <atomic>
#include <vector>

namespace simnccl {

enum class Stage { meet, header, data, peer_header, peer };

// The communicator was aborted while a thread waited.
struct Aborted {};

class Wire {
 public:
  Wire() = default;
  Wire(std::vector<int> members, int me, int context) : members_(std::move(members)), me_(me), context_(context) {}

  Wire fresh() const { return {members_, me_, context_}; }  // for another thread; its stages must differ
  int size() const { return static_cast<int>(members_.size()); }
  int me() const { return me_; }
  int world_rank(int member) const { return members_[static_cast<size_t>(member)]; }

  void send(int to, Stage stage, const void* data, size_t bytes);
  void receive(int from, Stage stage, void* data, size_t capacity);
  // Waits for everything since the last call. Returns the bytes of each receive, in order. Throws Aborted.
  std::vector<size_t> finish(const std::atomic<bool>& aborted);

 private:
  int tag(Stage stage) const;

  std::vector<int> members_;
  int me_ = 0, context_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<bool> received_;
};

}  // namespace simnccl
