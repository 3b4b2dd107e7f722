// api: the functions of libnccl.so.2 that our code calls, over communicators that use MPI.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/simgpu/nccl/communicator.h"

using namespace simnccl;

namespace {

// What a thread has called since ncclGroupStart.
struct Group {
  struct Item {
    ncclComm_t comm;
    cudaStream_t stream;
    Operation operation;
  };
  int depth = 0;
  std::vector<Item> items;
};
Group& group() {
  static thread_local Group g;
  return g;
}

ncclResult_t flush() {
  std::vector<Group::Item> items = std::exchange(group().items, {});
  ncclResult_t worst = ncclSuccess;
  while (!items.empty()) {  // one launch for each communicator, in the order of their first operations
    const ncclComm_t comm = items.front().comm;
    const cudaStream_t stream = items.front().stream;
    std::vector<Operation> operations;
    std::vector<Group::Item> rest;
    for (const Group::Item& item : items) {
      if (item.comm == comm)
        operations.push_back(item.operation);
      else
        rest.push_back(item);
      if (item.comm == comm && item.stream != stream)
        complain("a group uses several streams for one communicator: the stand-in takes the first");
    }
    items = std::move(rest);
    Communicator* c = find(comm, "ncclGroupEnd");
    const ncclResult_t result = c == nullptr ? ncclInvalidArgument : c->launch(operations, stream);
    if (result != ncclSuccess && (worst == ncclSuccess || worst == ncclInProgress)) worst = result;
  }
  return worst;
}

ncclResult_t ask(const char* name, ncclComm_t comm, cudaStream_t stream, const Operation& operation) {
  if (find(comm, name) == nullptr) return ncclInvalidArgument;
  group().items.push_back({comm, stream, operation});
  return group().depth > 0 ? ncclSuccess : flush();
}

Mode mode_of(const ncclConfig_t* config) {
  return config != nullptr && config->blocking == 0 ? Mode::non_blocking : Mode::blocking;
}

int id_context(const ncclUniqueId& id) {
  int context = 0;
  std::memcpy(&context, id.internal, sizeof(context));
  return context;
}

}  // namespace

extern "C" {

// SIMNCCL_VERSION: to simulate ranks with different versions.
ncclResult_t ncclGetVersion(int* version) {
  const char* text = std::getenv("SIMNCCL_VERSION");
  *version = text == nullptr ? NCCL_VERSION_CODE : std::atoi(text);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int made = 0;
  int initialized = 0, rank = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    std::fprintf(stderr, "simnccl: MPI must be started first\n");
    return ncclSystemError;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::memset(id->internal, 0, sizeof(id->internal));
  const int context = 4096 * (4096 + rank) + made++ % 4096;  // beside those of splits
  std::memcpy(id->internal, &context, sizeof(context));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  int world = 0, me = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (ranks != world || rank != me) {
    complain("a communicator of rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
             ": the stand-in makes one of the whole MPI world, and splits it");
    return ncclInvalidArgument;
  }
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  *out = add(std::make_unique<Communicator>(Wire(members, rank, id_context(id)), mode_of(config)));
  return find(*out, "ncclCommInitRankConfig")->meet(id);
}
ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(out, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t* config) {
  Communicator* c = find(comm, "ncclCommSplit");
  if (c == nullptr) return ncclInvalidArgument;
  return c->split(color, key, config == nullptr ? c->mode() : mode_of(config), out);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Communicator* c = find(comm, "ncclCommFinalize");
  return c == nullptr ? ncclInvalidArgument : c->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Communicator* c = find(comm, "ncclCommDestroy");
  if (c == nullptr) return ncclInvalidArgument;
  if (c->state() == ncclInProgress)
    return c->fail(ncclInvalidUsage, "ncclCommDestroy while the communicator is still in progress");
  c->end(Life::destroyed);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Communicator* c = find(comm, "ncclCommAbort");
  if (c == nullptr) return ncclInvalidArgument;
  c->end(Life::aborted);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  Communicator* c = find(comm, "ncclCommGetAsyncError");
  if (c == nullptr) return ncclInvalidArgument;
  *state = c->state();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  Communicator* c = find(comm, "ncclCommCount");
  if (c == nullptr) return ncclInvalidArgument;
  *count = c->size();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  Communicator* c = find(comm, "ncclCommUserRank");
  if (c == nullptr) return ncclInvalidArgument;
  *rank = c->rank();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  Communicator* c = comm == nullptr ? nullptr : find(comm, "ncclGetLastError");
  text = c == nullptr ? "" : c->last_error();
  return text.c_str();
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) {
    complain("ncclGroupEnd without ncclGroupStart");
    return ncclInvalidUsage;
  }
  return --group().depth > 0 ? ncclSuccess : flush();
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclAllReduce", comm, stream, {Kind::all_reduce, type, op, 0, count, from, to});
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclReduce", comm, stream, {Kind::reduce, type, op, root, count, from, to});
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return ask("ncclBroadcast", comm, stream, {Kind::broadcast, type, ncclSum, root, count, from, to});
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return ask("ncclAllGather", comm, stream, {Kind::all_gather, type, ncclSum, 0, count, from, to});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclReduceScatter", comm, stream, {Kind::reduce_scatter, type, op, 0, count, from, to});
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask("ncclSend", comm, stream, {Kind::send, type, ncclSum, peer, count, from, nullptr});
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclRecv", comm, stream, {Kind::receive, type, ncclSum, peer, count, nullptr, to});
}

}  // extern "C"
