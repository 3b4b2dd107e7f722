// kernel_checks_graph: csr, graph_rows and block_terms, CUDA against CPU.
#include "kernels/block_terms.h"
#include "kernels/csr.h"
#include "kernels/graph_rows.h"
#include "launch/doctor/kernel_check_tools.h"

namespace pal::launch::detail {
namespace {

struct Graph {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<float> weights;
};

// About sixteen partners a row; also the check of csr itself: the same bits.
Graph check_csr(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t rows = sizes.rows, pairs = 8 * rows, room = csr_capacity(pairs);
  Random random(1, Purpose::bench, 1);
  std::vector<int32_t> i(pairs), j(pairs);
  for (int64_t n = 0; n < pairs; ++n) {
    i[n] = static_cast<int32_t>(random.below(rows));
    j[n] = static_cast<int32_t>(random.below(rows));
  }
  const std::vector<float> w = random_numbers(pairs, 2);
  Graph g{std::vector<int64_t>(rows + 1), std::vector<int32_t>(room), std::vector<float>(room)};
  std::vector<float> degrees(rows);
  int64_t nnz = 0;
  cpu::csr<float>(
      {{g.offsets.data(), rows + 1}, {g.columns.data(), room}, {g.weights.data(), room}, {degrees.data(), rows}, &nnz},
      {{i.data(), pairs}, {j.data(), pairs}, {w.data(), pairs}}, rows,
      HostScratch(cpu::csr_scratch_bytes<float>(rows, pairs)), cpu);
  g.columns.resize(nnz);
  g.weights.resize(nnz);

  const DeviceArray<int32_t> device_i(i), device_j(j), columns(room);
  const DeviceArray<float> device_w(w), weights(room), device_degrees(rows);
  const DeviceArray<int64_t> offsets(rows + 1), device_nnz(1);
  const DeviceArray<char> scratch(cuda::csr_scratch_bytes<float>(rows, pairs));
  KernelCheck check{"csr", fmt::format("{} pairs, {} rows", pairs, rows)};
  check.milliseconds = milliseconds(
      [&] {
        cuda::csr<float>({offsets.span(), columns.span(), weights.span(), device_degrees.span(), device_nnz.data()},
                         {device_i.span(), device_j.span(), device_w.span()}, rows, scratch.scratch(), nullptr);
      },
      sizes.repeats);
  std::vector<int32_t> got_columns = columns.host();
  std::vector<float> got_weights = weights.host();
  got_columns.resize(nnz);
  got_weights.resize(nnz);
  const bool same = device_nnz.host()[0] == nnz && offsets.host() == g.offsets && got_columns == g.columns &&
                    got_weights == g.weights && device_degrees.host() == degrees;
  check.error = same ? 0 : 1;
  check.bytes = 12.0 * static_cast<double>(pairs) + 8.0 * static_cast<double>(nnz) + 12.0 * static_cast<double>(rows);
  checks.push_back(check);
  return g;
}

void check_graph_rows(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, const Graph& g, Cpu cpu) {
  const int64_t rows = sizes.rows, dims = sizes.dims, nnz = static_cast<int64_t>(g.columns.size());
  const std::vector<float> z = random_numbers(rows * dims, 3);
  const DeviceArray<float> device_z(z), out(rows * dims), weights(g.weights);
  const DeviceArray<int64_t> offsets(g.offsets);
  const DeviceArray<int32_t> columns(g.columns);
  const DeviceArray<double> value(1);
  const DeviceArray<char> scratch(cuda::graph_rows_scratch_bytes<float>(rows, nnz, dims));
  const struct {
    RowForm form;
    const char* name;
    double flops;  // of an edge and column
  } forms[] = {{RowForm::sum, "graph_rows sum", 2},
               {RowForm::difference, "graph_rows difference", 5},
               {RowForm::repulsion, "graph_rows repulsion", 8}};
  for (const auto& f : forms) {
    std::vector<float> expected(rows * dims);
    double expected_value = 0;
    const MatrixView<const float> view(z.data(), rows, dims), device_view(device_z.data(), rows, dims);
    cpu::graph_rows<float>({expected.data(), rows, dims}, &expected_value, view, view,
                           {{g.offsets.data(), rows + 1}, {g.columns.data(), nnz}, {g.weights.data(), nnz}},
                           {f.form, 1.0, Into::overwrite},
                           HostScratch(cpu::graph_rows_scratch_bytes<float>(rows, nnz, dims)), cpu);
    KernelCheck check{f.name, fmt::format("{} x {}, {} entries", rows, dims, nnz)};
    check.milliseconds = milliseconds(
        [&] {
          cuda::graph_rows<float>({out.data(), rows, dims}, value.data(), device_view, device_view,
                                  {offsets.span(), columns.span(), weights.span()}, {f.form, 1.0, Into::overwrite},
                                  scratch.scratch(), nullptr);
        },
        sizes.repeats);
    check.error = distance(out.host(), expected);
    check.tolerance = 1e-5;
    const double passes = f.form == RowForm::repulsion ? 2 : 1;
    check.bytes = passes * (4.0 * static_cast<double>((nnz + 2 * rows) * dims) + 8.0 * static_cast<double>(nnz));
    check.flops = f.flops * static_cast<double>(nnz * dims);
    checks.push_back(check);
  }
}

void check_block_terms(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t rows = sizes.rows, dims = sizes.dims, blocks = std::min<int64_t>(1000, rows);
  const std::vector<float> z = random_numbers(rows * dims, 4);
  Random random(1, Purpose::bench, 5);
  std::vector<int32_t> block(rows);
  for (int32_t& b : block) b = static_cast<int32_t>(random.below(blocks + 1)) - 1;
  const MatrixView<const float> view(z.data(), rows, dims);
  std::vector<double> sums(blocks * dims);
  cpu::block_sums<float>({sums.data(), blocks, dims}, view, {block.data(), rows},
                         HostScratch(cpu::block_sums_scratch_bytes(rows, blocks, dims)), cpu);

  const DeviceArray<float> device_z(z), out(rows * dims);
  const DeviceArray<int32_t> device_block(block);
  const DeviceArray<double> device_sums(blocks * dims), value(1);
  const DeviceArray<char> scratch(
      std::max(cuda::block_sums_scratch_bytes(rows, blocks, dims), cuda::block_differences_scratch_bytes(rows, dims)));
  const MatrixView<const float> device_view(device_z.data(), rows, dims);
  const std::string shape = fmt::format("{} x {}, {} blocks", rows, dims, blocks);
  KernelCheck s{"block_sums", shape};
  s.milliseconds = milliseconds(
      [&] {
        cuda::block_sums<float>({device_sums.data(), blocks, dims}, device_view, device_block.span(), scratch.scratch(),
                                nullptr);
      },
      sizes.repeats);
  s.error = distance(device_sums.host(), sums);
  s.tolerance = 1e-12;
  s.bytes = 4.0 * static_cast<double>(rows * dims + rows) + 8.0 * static_cast<double>(blocks * dims);
  s.flops = static_cast<double>(rows * dims);
  checks.push_back(s);

  std::vector<float> expected(rows * dims);
  const std::vector<double> weight(blocks, 0.5);  // the sums serve as means: any numbers do
  double expected_value = 0;
  cpu::block_differences<float>({expected.data(), rows, dims}, &expected_value, view, {sums.data(), blocks, dims},
                                {weight.data(), blocks}, {block.data(), rows}, 1.0, Into::overwrite,
                                HostScratch(cpu::block_differences_scratch_bytes(rows)), cpu);
  const DeviceArray<double> means(sums), device_weight(weight);
  KernelCheck d{"block_differences", shape};
  d.milliseconds = milliseconds(
      [&] {
        cuda::block_differences<float>({out.data(), rows, dims}, value.data(), device_view,
                                       {means.data(), blocks, dims}, device_weight.span(), device_block.span(), 1.0,
                                       Into::overwrite, scratch.scratch(), nullptr);
      },
      sizes.repeats);
  d.error = std::max(distance(out.host(), expected), std::abs(value.host()[0] / expected_value - 1));
  d.tolerance = 1e-5;
  d.bytes = 8.0 * static_cast<double>(rows * dims) + 8.0 * static_cast<double>(blocks * dims) +
            4.0 * static_cast<double>(rows);
  d.flops = 4.0 * static_cast<double>(rows * dims);
  checks.push_back(d);

  KernelCheck r{"block_rows", shape};
  cpu::block_rows<float>({expected.data(), rows, dims}, {sums.data(), blocks, dims}, {block.data(), rows}, 0.5,
                         Into::overwrite, cpu);
  r.milliseconds = milliseconds(
      [&] {
        cuda::block_rows<float>({out.data(), rows, dims}, {means.data(), blocks, dims}, device_block.span(), 0.5,
                                Into::overwrite, nullptr);
      },
      sizes.repeats);
  r.error = distance(out.host(), expected);
  r.tolerance = 1e-6;
  r.bytes = d.bytes;
  checks.push_back(r);
}

// Of a table between blocks: as many blocks as classes that a table has.
void check_block_tables(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t blocks = std::min<int64_t>(100, sizes.pair_rows), dims = sizes.dims;
  const auto doubles = [](int64_t count, uint64_t stream) {
    const std::vector<float> drawn = random_numbers(count, stream);
    return std::vector<double>(drawn.begin(), drawn.end());
  };
  std::vector<double> table = doubles(blocks * blocks, 10);
  for (int64_t c = 0; c < blocks; ++c) {
    for (int64_t d = 0; d < c; ++d) table[c * blocks + d] = table[d * blocks + c];
  }
  const std::vector<double> means = doubles(blocks * dims, 11), members(blocks, 3.0);
  const DeviceArray<double> device_table(table), device_means(means), device_members(members), out(blocks * dims),
      weight(blocks), value(1);
  const MatrixView<const double> table_view(table.data(), blocks, blocks), means_view(means.data(), blocks, dims),
      on_device(device_table.data(), blocks, blocks), means_there(device_means.data(), blocks, dims);
  const std::string shape = fmt::format("{} blocks x {}", blocks, dims);
  std::vector<double> expected(blocks * dims), expected_weight(blocks);
  const double products = static_cast<double>(blocks) * static_cast<double>(blocks) * static_cast<double>(dims);
  const double bytes = 16.0 * static_cast<double>(blocks * dims) + 8.0 * static_cast<double>(blocks * blocks);

  cpu::block_table({expected.data(), blocks, dims}, table_view, means_view, cpu);
  KernelCheck product{"block_table", shape};
  product.milliseconds = milliseconds(
      [&] {
        cuda::block_table({out.data(), blocks, dims}, on_device, means_there, nullptr);
      },
      sizes.repeats);
  product.error = distance(out.host(), expected);
  product.tolerance = 1e-12;
  product.bytes = bytes;
  product.flops = 2 * products;
  checks.push_back(product);

  double expected_value = 0;
  cpu::block_between({expected.data(), blocks, dims}, {expected_weight.data(), blocks}, &expected_value, table_view,
                     means_view, {members.data(), blocks}, HostScratch(cpu::block_between_scratch_bytes(blocks)), cpu);
  const DeviceArray<char> scratch(cuda::block_between_scratch_bytes(blocks, dims));
  KernelCheck between{"block_between", shape};
  between.milliseconds = milliseconds(
      [&] {
        cuda::block_between({out.data(), blocks, dims}, weight.span(), value.data(), on_device, means_there,
                            device_members.span(), scratch.scratch(), nullptr);
      },
      sizes.repeats);
  between.error = std::max({distance(out.host(), expected), distance(weight.host(), expected_weight),
                            std::abs(value.host()[0] / expected_value - 1)});
  between.tolerance = 1e-9;  // the value adds terms of both signs
  between.bytes = bytes;
  between.flops = 6 * products;
  checks.push_back(between);
}

}  // namespace

void check_graph_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const Graph graph = check_csr(checks, sizes, cpu);
  check_graph_rows(checks, sizes, graph, cpu);
  check_block_terms(checks, sizes, cpu);
  check_block_tables(checks, sizes, cpu);
}

}  // namespace pal::launch::detail
