#include "core/loss/moment_terms.h"

#include <ATen/ops/empty.h>

#include "core/loss/tensor_view.h"

namespace pal {
namespace {

namespace cpu = kernels::cpu;
using kernels::Into;
using kernels::MomentsOptions;

// Rows whose statistics are taken together.
struct Group {
  at::Tensor rows, out;            // this rank's rows and where their gradient goes
  at::Tensor mean;                 // (D) fp64, of all ranks
  int64_t n = 0;                   // rows of all ranks
  std::vector<int64_t> counts;     // rows of each rank
  int64_t begin = 0;               // this rank's first row among them
};

void covariance_form(MomentTerms& terms, const Group& group, Comm& comm, const MomentsOptions& options, int threads) {
  const int64_t dims = group.rows.size(1);
  const at::Tensor packed = second_moment(group.rows, group.mean, comm, options, threads);
  const at::Tensor a = at::empty({dims, dims}, group.rows.options());
  by_type(group.rows, [&](auto t) {
    using T = decltype(t);
    cpu::covariance_terms<T>(matrix_view<T>(a), &terms.variance, &terms.covariance, span<const double>(packed), group.n,
                             options, {threads});
    const ScratchMemory scratch(cpu::centred_product_scratch_bytes<T>(group.rows.size(0), dims));
    cpu::centred_product<T>(matrix_view<T>(group.out), matrix_view<const T>(group.rows), span<const double>(group.mean),
                            matrix_view<const T>(a), Into::add, scratch, {threads});
  });
}

void gram_form(MomentTerms& terms, const Group& group, Comm& comm, const MomentsOptions& options, int threads) {
  const at::Tensor all = comm.size() == 1 ? group.rows : comm.all_gather_v(group.rows, group.counts);
  by_type(all, [&](auto t) {
    using T = decltype(t);
    const ScratchMemory scratch(cpu::gram_terms_scratch_bytes<T>(group.n, all.size(1), options));
    cpu::gram_terms<T>(matrix_view<T>(group.out), &terms.variance, &terms.covariance, matrix_view<const T>(all),
                       span<const double>(group.mean), group.begin, options, Into::add, scratch, {threads});
  });
}

// Collective. The groups of this rank's rows, with their global means: one all-reduce.
std::vector<Group> make_groups(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, Comm& comm, Moments moments) {
  const int64_t count = moments == Moments::per_view ? batch.views : 1;
  const int64_t views = batch.views / count;   // in a group
  const int64_t local = batch.local_positions() * views, dims = z.size(1);
  const at::Tensor means = at::empty({count, dims}, at::kDouble);
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
    const ScratchMemory scratch(cpu::column_sums_scratch_bytes(local, dims));
    by_type(z, [&](auto t) {
      using T = decltype(t);
      cpu::column_sums<T>(span<double>(group.mean), matrix_view<const T>(group.rows), scratch, {batch.threads});
    });
  }
  PAL_CHECK(groups[0].n >= 2, "rows whose variance is asked", groups[0].n,
            "a variance takes at least two: make the batch larger or use loss.moments=pooled");
  comm.all_reduce(means);
  means.div_(static_cast<double>(groups[0].n));
  return groups;
}

}  // namespace

at::Tensor second_moment(const at::Tensor& rows, const at::Tensor& mean, Comm& comm, const MomentsOptions& options,
                         int threads) {
  const int64_t dims = rows.size(1);
  const at::Tensor packed = at::empty({kernels::packed_size(dims)}, at::kDouble);
  by_type(rows, [&](auto t) {
    using T = decltype(t);
    const ScratchMemory scratch(cpu::centred_second_moment_scratch_bytes<T>(rows.size(0), dims, options));
    cpu::centred_second_moment<T>(span<double>(packed), matrix_view<const T>(rows), span<const double>(mean), options, scratch,
                                  {threads});
  });
  comm.all_reduce(packed);
  return packed;
}

MomentTerms add_moment_terms(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, Comm& comm, Moments moments,
                             const MomentsOptions& options) {
  MomentTerms sum;
  for (const Group& group : make_groups(dz, z, batch, comm, moments)) {
    MomentTerms terms;
    if (kernels::covariance_form_wins(group.n, z.size(1), z.element_size(), sizeof(double))) {
      covariance_form(terms, group, comm, options, batch.threads);
    } else {
      gram_form(terms, group, comm, options, batch.threads);
    }
    sum.variance += terms.variance;
    sum.covariance += terms.covariance;
  }
  return sum;
}

}  // namespace pal
