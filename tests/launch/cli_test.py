#!/usr/bin/env python3
"""The program from the outside: commands, help, exit codes, one-sentence errors, config.

usage: cli_test.py PAL CONFIGS [test names]     (standard library only)
"""
import concurrent.futures
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

PAL, CONFIGS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RUN = "train: {steps: 10}\noptim: {lr: 0.1}\n"


class Cli(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="pal-cli-test-")
        self.folder = self.temporary.name

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as f:
            f.write(text)
        return name

    def call(self, *args, code=0, **environment):
        """Runs pal; the exit code must be `code`. Returns standard output and standard error."""
        done = subprocess.run([PAL, *args], cwd=self.folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, f"pal {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def refused(self, *args, code=2):
        """The one sentence of an error."""
        out, err = self.call(*args, code=code)
        self.assertEqual(out, "")
        self.assertRegex(err, r"^error: [^\n]*\n$")
        return err[len("error: "):-1]

    @functools.lru_cache(maxsize=None)   # a start of the program costs half a second
    def overview(self):
        return self.call("help")[0]

    def listed(self, section):
        overview = self.overview()
        return re.findall(r"^  (\w+) ", overview.split(section + ":\n")[1].split("\n\n")[0], re.M)

    def dump(self, *args, **environment):
        return self.call("config", *args, "--yaml", **environment)[0]

    # ---- jobs -----------------------------------------------------------------------------------------------------

    def test_submit_notes_a_gpu_job_without_cores(self):
        config = f"{CONFIGS}/cifar10-vicreg.yaml"
        for args, noted in [(["--gpus-per-node", "2"], True), (["--gpus-per-node", "2", "--cpus-per-rank", "6"], False),
                            ([], False)]:
            out, err = self.call("submit", config, *args, "--dry-run")
            self.assertEqual("--cpus-per-rank" in err, noted, err)
            self.assertEqual("#SBATCH --cpus-per-task=6\n" in out, "6" in args, out)

    # ---- graphs in files ------------------------------------------------------------------------------------------

    def test_pairs_converted_both_ways(self):
        self.write("a.csv", "i,j,weight\n0,1,0.5\n3,1,-2\n2,2,1\n1,0,0.5\n")
        self.assertIn("4 samples", self.call("graph", "convert", "a.csv", "b.h5")[0].replace("3 pairs of ", ""))
        self.call("graph", "convert", "b.h5", "c.csv")
        with open(f"{self.folder}/c.csv") as f:
            self.assertEqual(f.read(), "i,j,weight\n0,1,0.5\n1,3,-2\n2,2,1\n")
        info = self.call("graph", "info", "b.h5")[0]
        for line in (r"pairs +3\b", r"of negative weight +1\b", r"self-loops +1\b", r"components of positive pairs +3\b", "-2 to 1"):
            self.assertRegex(info, line)

    def test_bad_pairs_are_refused(self):
        cases = {
            "0,9\n": "f.csv line 1: sample outside the data set: 9",
            "0,1,1\n1,0,2\n": "the directions of a pair have different weights",
            "0,1,1\n0,1,2\n": "a pair has two weights",
            "0,1,nan\n": "f.csv line 1: the weight is nan",
            "0,1,1\nzero,one\n": "f.csv line 2 names samples: zero; name the data set",
        }
        for text, words in cases.items():
            self.write("f.csv", text)
            self.assertIn(words, self.refused("graph", "info", "f.csv", "--samples", "5", code=3))
        self.refused("graph", "info", "none.csv", code=3)
        self.refused("graph", "info", "f.csv", "--samples", "0")

    def test_bad_graph_settings_are_refused(self):
        self.write("c.yaml", RUN)
        for setting, words in {"graph.alpha=1.5": "graph.alpha", "graph.alpha=-0.1": "graph.alpha", "graph.missing=2": "graph.missing",
                               "graph.kind=pairs": "graph.pairs is not set for graph.kind: pairs",
                               "graph.kind=ranking": "graph.targets is not set for graph.kind: ranking"}.items():
            self.assertIn(words, self.refused("config", "c.yaml", setting))

    # ---- commands and help ---------------------------------------------------------------------------------------

    def test_overview(self):
        overview = self.overview()
        self.assertLessEqual(max(map(len, overview.splitlines())), 120)
        for args in ((), ("--help",), ("-h",)):
            self.assertEqual(self.call(*args)[0], overview)
        self.assertRegex(self.call("--version")[0], r"^pal \d+\.\d+\.\d+\n$")
        for command in ("train", "data", "eval", "config", "doctor", "help"):
            self.assertIn(command, self.listed("Commands"))

    def test_every_command_has_help_with_an_example(self):
        for command in self.listed("Commands"):
            text = self.call(command, "--help")[0]
            self.assertIn("Example", text, command)
            self.assertRegex(text, rf"Examples?:\n +.*pal {command}\b", command)
            for name in ("", *re.findall(r"(?m)^  ([a-z-]+) ", text.partition("Subcommands:")[2].partition("\n\n")[0])):
                lines = self.call(*filter(None, (command, name)), "--help")[0].splitlines()
                self.assertLessEqual(max(map(len, lines)), 120, f"{command} {name}")
            self.assertEqual("  mpirun " in text, "--allow-run-as-root" in text, f"{command}: Open MPI refuses root")
            sentence = self.refused(command, "--no-such-option")
            self.assertIn("--help", sentence)

    def test_topics(self):
        topics = self.listed("Topics")
        self.assertTrue({"start", "config", "train", "data", "graph", "eval"} <= set(topics))
        for topic in topics:
            page = self.call("help", topic)[0]
            self.assertTrue(page.startswith(topic + ": "), page)
            self.assertLessEqual(max(map(len, page.splitlines())), 120, topic)
            for command in re.findall(r"^ +pal (\w+)", page, re.M):
                self.assertIn(command, self.listed("Commands"), topic)
        self.assertIn("the nearest topic is train", self.refused("help", "trian"))

    def test_the_first_help_page_has_the_first_commands(self):
        """From a checkout to `pal`: build, PATH, and what mpirun needs as root."""
        with open(f"{CONFIGS}/../README.md") as f:
            readme = f.read()
        start, train = self.call("help", "start")[0], self.call("help", "train")[0]
        for text in (readme, start):
            steps = [text.index(words) for words in ("./launch/setup\n" if text is readme else "./launch/setup ", "cmake --preset release && cmake --build --preset release", "export PATH=$PWD/build:$PATH")]
            self.assertEqual(steps, sorted(steps))
        self.assertLess(start.index("export PATH="), start.index("pal doctor"))
        with open(f"{CONFIGS}/../launch/quickstart") as f:
            self.assertRegex(f.read(), r"(?m)^ *build .* pal pal_torch_ops$")   # Python and cmake --install work after it
        labeled = re.search(r"pal label runs/quickstart/(\w+)", readme)[1]   # the quickstart's runs are named by their graphs
        self.assertIn(labeled, ("mixed", "supervised", "signed"), "answers have weight in these graphs only")
        for text in (readme, start, train):
            self.assertEqual("mpirun " in text, "--allow-run-as-root" in text, "Open MPI refuses root")
        codes = dict(re.findall(r"(?m)^ +(\d+(?:, \d+)*)  +(\S.*)$", self.call("help", "slurm")[0]))
        self.assertIn("not requeued", codes["76"])
        self.assertTrue({"0", "75", "76"} < set(codes), codes)

    def test_unknown_command(self):
        self.assertEqual(self.refused("trian"), "unknown command: trian; the nearest is train (all of them: pal help)")

    def test_theory_fits_a_terminal(self):
        lines = self.call("theory")[0].splitlines()
        self.assertLessEqual(max(map(len, lines)), 120)
        held = len([line for line in lines if line.startswith("PASS  ")])
        self.assertEqual(lines[-1], f"{held} of {held} statements hold")

    def test_wrong_arguments(self):
        for args, sentence in {("start", "photos", "--lables", "none"): "unknown option: --lables; the nearest is --labels; see pal start --help",
                               ("start", "photos", "more"): "unexpected argument: more; see pal start --help",
                               ("start", "photos", "--np"): "--np needs a value; see pal start --help",
                               ("data", "inf", "x.h5"): "unknown subcommand: inf; the nearest is info; see pal data --help",
                               ("data",): "a subcommand is missing: import, info, verify; see pal data --help",
                               ("data", "info"): "DATA is required; see pal data info --help",
                               ("data", "info", "x.h5", "--lst"): "unknown option: --lst; the nearest is --list; see pal data info --help"}.items():
            self.assertEqual(self.refused(*args), sentence)

    def test_doctor(self):
        out = self.call("doctor", "--report", "doctor.html", MY_PASSWORD="hunter-12345")[0]
        with open(f"{self.folder}/doctor.html", encoding="utf-8") as f:
            page = f.read()
        for word in ("LibTorch", "Fashion-MNIST", "this machine can train on"):
            self.assertIn(word, page)
        self.assertNotIn("hunter-12345", page)
        for what in ("CPU", "cores", "memory", "LibTorch", "GPU", "CUDA, NCCL", "nvJPEG", "MPI", "HDF5", "disk", "Fashion-MNIST"):
            self.assertRegex(out, rf"(?m)^{what} +(ok|warn)  ", out)
        if "not in this build" not in out:
            self.assertIn("LibTorch's CUDA half loads", out)
        self.assertIn("a job of two ranks works", out)
        self.assertIn("GPU kernels", out)  # compared with the CPU's, or a line that says why not

    def test_a_start_on_the_cpu_loads_only_the_cuda_runtime(self):
        libraries = subprocess.run(["ldd", PAL], capture_output=True, text=True, check=True).stdout
        self.assertIn("libtorch_cpu.so", libraries)
        for heavy in ("libtorch_cuda.so", "libcublas", "libcudnn"):   # 270 MB in every process
            self.assertNotIn(heavy, libraries)

    def test_doctor_without_mpirun_fails(self):
        bin_dir = f"{self.folder}/bin"
        os.mkdir(bin_dir)
        with open(f"{bin_dir}/mpirun", "w") as f:
            f.write("#!/bin/sh\nexit 213\n")
        os.chmod(f"{bin_dir}/mpirun", 0o755)
        out = self.call("doctor", code=1, PATH=f"{bin_dir}:{os.environ['PATH']}")[0]
        self.assertRegex(out, r"(?m)^MPI +missing  .*213")
        self.assertIn("try: mpirun " + ("--allow-run-as-root " if os.geteuid() == 0 else "") + "--bind-to none -np 2 hostname", " ".join(out.split()))

    # ---- config --------------------------------------------------------------------------------------------------

    def test_config_errors(self):
        self.write("c.yaml", RUN)
        cases = {
            "train.stesp=3": "command line: unknown key train.stesp; the nearest is train.steps",
            "train.seed=x": "command line: train.seed is x; it must be an integer of at least 0",
            "loss.kind=vicregg": "(the nearest is vicreg)",
            "train.epochs=3": "both are set: train.steps (c.yaml:1) and train.epochs (command line)",
            "augment.crop_scale=[1, 0.5]": "it must be [min, max] with min at most max",
            "nonsense": "write section.key=value",
        }
        for override, sentence in cases.items():
            self.assertIn(sentence, self.refused("config", "c.yaml", override))
        self.assertIn("this config file does not exist: none.yaml", self.refused("config", "none.yaml"))
        self.assertIn("neither train.steps nor train.epochs", self.refused("config", self.write("d.yaml", "optim: {lr: 1}\n")))
        self.assertIn("no config is given", self.refused("config"))

    def test_a_bad_config_stops_training_before_anything_is_written(self):
        self.write("c.yaml", RUN + "model: {bakcbone: convnet}\n")
        self.assertIn("c.yaml:3: unknown key model.bakcbone; the nearest is model.backbone", self.refused("train", "c.yaml", "--np", "2"))
        self.assertEqual(os.listdir(self.folder), ["c.yaml"])

    def test_a_decoder_for_gpus_stops_a_run_on_cpus_before_anything_is_written(self):
        self.write("c.yaml", RUN)
        out, err = self.call("train", "c.yaml", "data.train=x.h5", "data.decoder=nvjpeg", "data.decode=full", code=2, CUDA_VISIBLE_DEVICES="")
        self.assertIn("nvJPEG runs on GPUs, and these ranks compute on the CPU: data.decoder=nvjpeg; set data.decoder=cpu\n", err)
        self.assertEqual(os.listdir(self.folder), ["c.yaml"])

    def test_config_shows_the_origin_of_values(self):
        self.write("base.yaml", RUN)
        self.write("c.yaml", "base: base.yaml\ndata:\n  train: ${PAL_TEST_DATA}/x.h5\n")
        lines = self.call("config", "c.yaml", "train.seed=7", PAL_TEST_DATA="/d")[0].splitlines()
        rows = {line.split()[0]: line for line in lines}
        self.assertRegex(rows["train.steps"], r" 10 +base\.yaml:1$")
        self.assertRegex(rows["data.train"], r" /d/x\.h5 +c\.yaml:3, environment PAL_TEST_DATA$")
        self.assertRegex(rows["train.seed"], r" 7 +command line$")
        self.assertRegex(rows["loss.kind"], r" vicreg +default$")
        self.assertEqual(len({line.index(re.split(r"  +", line)[1], len(line.split()[0])) for line in lines}), 1, "not aligned")

    def test_old_keys_are_noted_on_standard_error(self):
        self.write("old.yaml", "train: {steps: 3, wire: bfloat16}\noptim: {lr: 1}\n")
        done = subprocess.run([PAL, "config", "old.yaml", "oracle.guide=none", "--yaml"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.splitlines(), [
            "note: old.yaml:1: train.wire is now called train.grad_dtype; the old name still works",
            "note: command line: oracle.guide is now called oracle.class_guess; the old name still works"])
        self.assertIn("  grad_dtype: bfloat16\n", done.stdout)
        self.assertIn("  class_guess: none\n", done.stdout)
        self.assertNotIn("wire", done.stdout)

    def test_dump_is_an_identity(self):
        self.write("c.yaml", RUN)
        first = self.dump("c.yaml", "data.train=a b/*.h5", "optim.lr=null", "optim.base_lr=1e-3", "model.projector=[]")
        self.assertEqual(self.dump(self.write("d.yaml", first)), first)

    def test_keys(self):
        out = self.call("config", "--keys")[0]
        names = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
        self.assertIn("train.steps", names)
        self.assertLessEqual(max(map(len, out.splitlines())), 120)
        some = self.call("config", "--keys", "checkpoint")[0]
        self.assertEqual([line for line in some.splitlines() if not line.startswith(" ")],
                         ["checkpoint.every = 500", "checkpoint.minutes = 10", "checkpoint.keep = 3"])
        self.write("c.yaml", RUN)
        table = [line.split()[0] for line in self.call("config", "c.yaml")[0].splitlines()[1:]]
        self.assertEqual(names, table)

    def test_every_recipe_loads(self):
        recipes = sorted(glob.glob(f"{CONFIGS}/*.yaml"))
        names = {os.path.basename(path)[:-5] for path in recipes}
        wanted = {f"{data}-{loss}" for data in ("cifar10", "cifar100") for loss in ("vicreg", "simclr", "barlow", "nnclr", "supervised")}
        wanted |= {f"{data}-{loss}" for data in ("imagenet", "imagenet100") for loss in ("vicreg", "simclr", "nnclr")} | {"imagenet-vicreg-32", "cifar10-paper", "quickstart"}
        self.assertEqual(wanted - names, set())
        for path in recipes:
            first = self.dump(path)
            self.assertEqual(self.dump(self.write("again.yaml", first)), first, path)
            with open(path) as f:
                text = f.read()
            self.assertTrue(text.startswith(f"# {os.path.basename(path)[:-5]}: "), path)
            if os.path.basename(path).startswith("oracles-"):
                continue
            self.assertRegex(text, r"(?m)^# Source: ", path)   # and the expected result, or that it is unknown
            self.assertRegex(text, r"(?i)expected|published|results? stand", path)

    def test_every_recipe_passes_check(self):
        # What the oracles' recipes compare on: features and labels.
        for name, descr, shape, data in (("rows", "<f4", "(256, 64)", bytes(4 * 64 * 256)), ("rows-labels", "<i8", "(256,)", bytes(8 * 256))):
            with open(f"{self.folder}/{name}.npy", "wb") as f:
                f.write(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little"))
                f.write(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n" + data)

        def check(path):
            features = ["data.train=rows.npy", "data.test=rows.npy"] if os.path.basename(path).startswith("oracles-") else []
            return path, self.call("train", path, "--check", *features)[0]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for path, out in pool.map(check, sorted(glob.glob(f"{CONFIGS}/*.yaml"))):
                self.assertRegex(out, "steps", path)
                self.assertRegex(out, "learning rate", path)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
