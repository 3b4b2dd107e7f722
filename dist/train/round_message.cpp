#include "dist/train/round_message.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace pal::dist {
namespace {

constexpr int64_t kHead = 4;  // decisions, asked, open, stop
constexpr int64_t kDecisionWords = 9;

int64_t words_of(int64_t decisions) { return kHead + decisions * kDecisionWords; }

at::Tensor encode(const RoundMessage& message, int64_t expected) {
  const auto decisions = static_cast<int64_t>(message.decisions.size());
  at::Tensor buffer = at::zeros({words_of(std::max(expected, decisions))}, at::kLong);
  std::vector<int64_t> words = {decisions, message.asked, message.open, static_cast<int64_t>(message.stop)};
  for (const oracle::Decision& d : message.decisions) {
    words.insert(words.end(), {d.query, d.i, d.j, static_cast<int64_t>(d.kind), d.node, static_cast<int64_t>(d.verdict),
                               d.effective_step, std::bit_cast<int64_t>(d.cost), std::bit_cast<int64_t>(d.confidence)});
  }
  std::copy(words.begin(), words.end(), buffer.data_ptr<int64_t>());
  return buffer;
}

RoundMessage decode(const at::Tensor& buffer) {
  const int64_t* w = buffer.data_ptr<int64_t>();
  RoundMessage message{w[1], w[2], static_cast<oracle::StopReason>(w[3])};
  for (int64_t k = 0; k < w[0]; ++k) {
    const int64_t* d = w + words_of(k);
    message.decisions.push_back({d[0], d[1], d[2], static_cast<oracle::QueryKind>(d[3]), d[4],
                                 static_cast<oracle::Verdict>(d[5]), d[6], std::bit_cast<double>(d[7]),
                                 std::bit_cast<double>(d[8])});
  }
  return message;
}

}  // namespace

RoundMessage broadcast_round(const RoundMessage& message, int64_t expected, comm::Comm& comm) {
  const at::Tensor whole = encode(message, expected);  // on rank 0
  at::Tensor first = whole.narrow(0, 0, words_of(expected)).contiguous();
  comm.broadcast(first, 0);
  const int64_t decisions = first.data_ptr<int64_t>()[0];
  if (decisions <= expected) return decode(first);
  at::Tensor all = comm.rank() == 0 ? whole : at::zeros({words_of(decisions)}, at::kLong);
  comm.broadcast(all, 0);
  return decode(all);
}

RoundStart broadcast_start(const RoundStart& start, int64_t expected, comm::Comm& comm) {
  at::Tensor head = at::zeros({4}, at::kLong);
  int64_t* h = head.data_ptr<int64_t>();
  h[0] = start.recorded_rounds;
  h[1] = start.exits ? 1 : 0;
  h[2] = start.exits_now ? 1 : 0;
  h[3] = start.answered_later ? 1 : 0;
  comm.broadcast(head, 0);
  return {.recorded_rounds = h[0],
          .answered_later = h[3] != 0,
          .exits = h[1] != 0,
          .exits_now = h[2] != 0,
          .message = broadcast_round(start.message, expected, comm)};
}

std::vector<oracle::Query> broadcast_queries(const std::vector<oracle::Query>& queries, comm::Comm& comm) {
  std::vector<int64_t> words;
  for (const oracle::Query& q : queries) {
    words.insert(words.end(), {q.id, static_cast<int64_t>(q.kind), q.template_sample, q.node,
                               static_cast<int64_t>(q.members.size())});
    words.insert(words.end(), q.members.begin(), q.members.end());
  }
  at::Tensor size = at::zeros({1}, at::kLong);
  *size.data_ptr<int64_t>() = static_cast<int64_t>(words.size());
  comm.broadcast(size, 0);
  words.resize(static_cast<size_t>(size.item<int64_t>()));
  comm.broadcast(at::from_blob(words.data(), {static_cast<int64_t>(words.size())}, at::kLong), 0);
  std::vector<oracle::Query> all;
  for (size_t at = 0; at < words.size();) {
    oracle::Query q{.id = words[at],
                    .kind = static_cast<oracle::QueryKind>(words[at + 1]),
                    .template_sample = words[at + 2],
                    .node = words[at + 3]};
    const auto members = words.begin() + static_cast<int64_t>(at) + 5;
    q.members.assign(members, members + words[at + 4]);
    at += 5 + static_cast<size_t>(words[at + 4]);
    all.push_back(std::move(q));
  }
  return all;
}

}  // namespace pal::dist
