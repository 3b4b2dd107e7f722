#include "core/loss/moment_terms.h"

#include "core/ops/moments.h"
#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

using kernels::Into;
using kernels::MomentsOptions;

// Rows that share their statistics.
struct Group {
  at::Tensor rows, out;         // this rank's rows and their gradient
  at::Tensor mean;              // (D) fp64, of all ranks
  int64_t n = 0;                // rows of all ranks
  std::vector<int64_t> counts;  // rows of each rank
  int64_t begin = 0;            // this rank's first row among them
};

// Both forms add to out; terms (2).
void covariance_form(const at::Tensor& terms, const Group& group, comm::Comm& comm, const MomentsOptions& options,
                     int threads) {
  const at::Tensor packed = second_moment(group.rows, group.mean, comm, options, threads);
  const at::Tensor a = ops::covariance_terms(terms, group.rows, packed, group.n, options, threads);
  ops::centered_product(group.out, group.rows, group.mean, a, Into::add, threads);
}

void gram_form(const at::Tensor& terms, const Group& group, comm::Comm& comm, const MomentsOptions& options,
               int threads) {
  const at::Tensor all = comm.size() == 1 ? group.rows : comm.all_gather_v(group.rows, group.counts);
  ops::gram_terms(group.out, terms, all, group.mean, group.begin, options, Into::add, threads);
}

// Collective. The groups of this rank's rows, with their global means: one all-reduce.
std::vector<Group> make_groups(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                               Moments moments) {
  const int64_t count = moments == Moments::per_view ? batch.views : 1;
  const int64_t views = batch.views / count;  // per group
  const int64_t local = batch.local_positions() * views, dims = z.size(1);
  const at::Tensor means = ops::empty_doubles({count, dims}, z);
  std::vector<Group> groups(count);
  for (int64_t g = 0; g < count; ++g) {
    Group& group = groups[g];
    group.rows = z.narrow(0, g * local, local);
    group.out = dz.narrow(0, g * local, local);
    group.mean = means.select(0, g);
    group.n = static_cast<int64_t>(batch.samples.size()) * views;
    group.begin = batch.begin * views;
    for (size_t r = 0; r + 1 < batch.rank_begin.size(); ++r) {
      group.counts.push_back((batch.rank_begin[r + 1] - batch.rank_begin[r]) * views);
    }
    ops::column_sums(group.mean, group.rows, batch.threads);
  }
  PAL_CHECK(groups[0].n >= 2, "rows whose variance is asked", groups[0].n,
            "a variance takes at least two: make the batch larger or use loss.moments=pooled");
  comm.all_reduce(means);
  means.div_(static_cast<double>(groups[0].n));
  return groups;
}

}  // namespace

at::Tensor second_moment(const at::Tensor& rows, const at::Tensor& mean, comm::Comm& comm,
                         const MomentsOptions& options, int threads) {
  const at::Tensor packed = ops::empty_doubles({kernels::packed_size(rows.size(1))}, rows);
  ops::centered_second_moment(packed, rows, mean, options, threads);
  comm.all_reduce(packed);
  return packed;
}

MomentTerms add_moment_terms(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                             Moments moments, const MomentsOptions& options) {
  const std::vector<Group> groups = make_groups(dz, z, batch, comm, moments);
  const at::Tensor terms = ops::zero_doubles({static_cast<int64_t>(groups.size()), 2}, z);
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto form = kernels::covariance_form_wins(groups[g].n, z.size(1), z.element_size(), sizeof(double))
                          ? covariance_form
                          : gram_form;
    form(terms[static_cast<int64_t>(g)], groups[g], comm, options, batch.threads);
  }
  MomentTerms sum;
  const std::vector<double> numbers = ops::to_host(terms);
  for (size_t g = 0; g < groups.size(); ++g) {
    sum.variance += numbers[2 * g];
    sum.covariance += numbers[2 * g + 1];
  }
  return sum;
}

double add_gram_square(const at::Tensor& dz, const at::Tensor& z, comm::Comm& comm, double scale, int threads) {
  // The raw second moments, not divided.
  MomentsOptions moments;
  moments.variance = kernels::Variance::norm;
  moments.variance_weight = moments.covariance_weight = scale;
  const at::Tensor zero = ops::zero_doubles({z.size(1)}, z), terms = ops::empty_doubles({2}, z);
  const at::Tensor packed = second_moment(z, zero, comm, moments, threads);
  const at::Tensor m = ops::covariance_terms(terms, z, packed, /*n=*/2, moments, threads);
  ops::centered_product(dz, z, zero, m, Into::add, threads);
  const std::vector<double> squares = ops::to_host(terms);  // on the diagonal of ZᵀZ, and off it
  return squares[0] + squares[1];
}

}  // namespace pal::loss
