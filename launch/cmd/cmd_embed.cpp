// cmd_embed: pal embed RUN DATA --out F: writes the features of every sample of a data set, as HDF5 or NumPy.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/io/feature_file.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/machine.h"
#include "launch/run/device_option.h"
#include "launch/run/folder_run.h"
#include "launch/run/output_file.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace fs = std::filesystem;

int cmd_embed(const std::vector<std::string>& arguments, Context& context) {
  std::string run, data, out, device, features = "backbone";
  CLI::App app("Writes the features of every sample of a data set, computed with the newest checkpoint of a run.",
               "pal embed");
  app.add_option("RUN", run, "run folder")->required();
  app.add_option(
         "DATA", data,
         "shards: a .h5 file, a folder of them, or a glob; a folder of pictures; or train, test: the sets of the "
         "run")
      ->required();
  app.add_option("--out", out, "file to write: .h5 (features, labels, ids) or .npy (features; labels beside it)")
      ->required();
  app.add_option("--features", features, "backbone (before the projector) or projector (the embedding)")
      ->check(CLI::IsMember({"backbone", "projector"}))
      ->capture_default_str();
  add_device_option(app, device);
  app.footer(
      "Examples:\n"
      "  pal embed runs/quickstart test --out features.h5\n"
      "  pal embed runs/photos new-photos --out features.npy\n"
      "  mpirun -np 2 --bind-to none pal embed runs/quickstart data/photos.h5 --out photos.npy\n"
      "  (as root, mpirun also needs --allow-run-as-root)");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  PAL_CHECK(out.ends_with(".h5") || out.ends_with(".hdf5") || out.ends_with(".npy"),
            "{} is not a name for a file of features", out, "end it with .h5 or .npy");

  const setup::RunSpec spec = run_spec(run);
  if (data == "train" || data == "test") {
    const std::string& file = data == "train" ? spec.data.train : spec.data.test;
    PAL_CHECK(!file.empty(), "the run does not name this set", "data." + data + " is empty",
              "give the path of the shards");
    data = file;
  } else if (is_picture_folder(data)) {
    PAL_CHECK(!dist::started_as_rank(), "a folder of pictures is imported before ranks start", data,
              "run this once without mpirun, or import it with pal data import");
    const std::string imported = run + "/pictures/" + fs::path(default_out(data)).filename().string() + ".h5";
    fs::create_directories(fs::path(imported).parent_path());
    const ImageFolder folder = look_at_folder(data, {"none", ""});
    if (const ImportEnd end = import_once(context.program, folder, imported, Changed::import_again); end.code != 0)
      return end.code;
    data = imported;
  }
  keep_freed_memory();
  dist::World& world = context.start_world();
  if (world.rank() == 0) OutputFile(out, 1 << 10);  // a place that cannot be written is found before the work
  at::set_num_threads(setup::compute_threads(spec.train, world.cores()));
  const auto set = data::Dataset::open(data);
  const at::Device on = encoder_device(device, spec.train, world);
  const TrainedRun trained = load_trained_run(run, spec, world.compute(), on);
  io::FeatureFile file;
  file.features =
      embed_all(*trained.encoder, spec, *set,
                features == "projector" ? eval::EmbedWhat::embedding : eval::EmbedWhat::features, world, data);
  if (world.rank() != 0) return static_cast<int>(Exit::ok);
  file.labels = set->labels();
  file.classes = set->classes();
  for (int64_t i = 0; i < set->size(); ++i) file.ids.push_back(set->id(i));
  file.about = {{"pal_run", run},
                {"pal_step", std::to_string(trained.step)},
                {"pal_features", features},
                {"pal_data", data},
                {"pal_version", PAL_VERSION}};
  const std::vector<std::string> written = io::write_feature_file(out, file);
  fmt::print("{}: {} x {} of {}, step {}\n", fmt::join(written, ", "), file.features.size(0), file.features.size(1),
             features, trained.step);
  if (out.ends_with(".npy"))  // which holds no names
    fmt::print("the names of its rows: pal data info {} --list\n", data);
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
