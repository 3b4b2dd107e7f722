#!/usr/bin/env python3
"""matrix_test: whole jobs on the stand-ins give the losses of CPU ranks, whatever the streams do.

    matrix_test.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS [values|streams|pairs] [--table FILE] [--only TEXT]

values: every value of every axis (cases.py), on 1, 2 and 3 ranks. streams: some cases with streams in order, late, and
late with seeds 1 to 5; the weights must be EQUAL, and with every tensor in memory of its own too. pairs: every two
values, on 1 to 3 ranks; hours.
"""
import argparse
import concurrent.futures
import json
import os
import sys
import threading

import cases
import operators_test
from job import Clock, Jobs, difference

# Different kinds of work in flight at once: buckets and batch norm, a queue and a predictor, two passes, oracle rounds.
STREAMS = [({}, 2), ({"loss": "nnclr", "views": "separate", "optim": "lars"}, 2), ({"views": "micro", "oracle": "captcha"}, 2)]


class Matrix:
    def __init__(self, jobs, only):
        self.jobs, self.only = jobs, only
        self.lock = threading.Lock()
        self.references, self.rows, self.failures = {}, [], []
        self.operators = set()  # of LibTorch, that ran on the device

    def reference(self, number, case, ranks):
        """The losses of CPU ranks; one run for all numbers of ranks where they give the same."""
        ranks = ranks if cases.per_world(case) else 1
        device = "cuda" if cases.own_twin(case) else "cpu"
        with self.lock:
            key = (number, ranks)
            if key not in self.references:
                self.references[key] = concurrent.futures.Future()
                mine = True
            else:
                mine = False
            future = self.references[key]
        if mine:
            try:
                run = f"{device}-{number}-{ranks}"
                environment = self.jobs.cpu() if device == "cpu" else self.jobs.device(ranks, streams="now")
                self.jobs.train(run, cases.cpu_settings(case), environment, ranks, device=device)
                future.set_result(self.jobs.losses(run))
            except BaseException as e:  # the other users of this future must not wait for ever
                future.set_exception(e)
        return future.result()

    def compare(self, number, case, ranks):
        clock = Clock()
        try:
            expected = self.reference(number, case, ranks)
            run = f"gpu-{number}-{ranks}"
            # A seed of its own for each case.
            folder = self.jobs.path(f"{run}-counters")
            os.makedirs(folder)
            self.jobs.train(run, cases.settings(case), self.jobs.device(ranks, seed=number, SIMGPU_COUNTERS=folder), ranks)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    self.operators |= operators_test.used(json.load(f))
            worst = difference(expected, self.jobs.losses(run))
            allowed = cases.tolerance(case)
            if not worst <= allowed:
                raise AssertionError(f"the losses differ by {worst:.1e}, allowed are {allowed:.0e}: {expected} on the CPU, "
                                     f"{self.jobs.losses(run)} on the device")
            self.report((cases.name(case), ranks, f"late, seed {number}", f"{worst:.0e}", f"{allowed:.0e}"), clock)
        except Exception as e:  # told at the end, with the others
            self.fail(f"{cases.name(case)} on {ranks} rank(s): {e}")

    def check_operators(self):
        known = operators_test.listed()
        for name in sorted(self.operators - known):
            self.fail(f"the operator {name} runs on the device and is not in operators.txt: is it in LibTorch's CUDA half, what does it cost?")
        for name in sorted(known - self.operators):
            self.fail(f"the operator {name} is in operators.txt and no run uses it")

    def equal_weights(self, number, case, ranks):
        """Streams in order, late, late with five seeds, and each tensor in an allocation of its own."""
        clock = Clock()
        own = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "SIMGPU_RACE": "1"}
        modes = [("in order", {"streams": "now"}), ("late", {}), *((f"late, seed {s}", {"seed": s}) for s in range(1, 6)),
                 ("each tensor alone, races looked for", {"seed": 6, **own})]
        found = {}
        try:
            for k, (mode, environment) in enumerate(modes):
                run = f"streams-{number}-{k}"
                self.jobs.train(run, cases.settings(case), self.jobs.device(ranks, **environment), ranks)
                found.setdefault(self.jobs.sha(run), []).append(mode)
            if len(found) != 1:
                raise AssertionError(f"the weights depend on the streams: {found}")
            self.report((cases.name(case), ranks, "in order, late, 6 seeds", "0 (weights)", "0"), clock)
        except Exception as e:
            self.fail(f"{cases.name(case)} on {ranks} rank(s): {e}")

    def report(self, row, clock):
        with self.lock:
            self.rows.append(row)
            print(f"{row[0]:50} W={row[1]} {row[2]:24} {row[3]:>12} {clock.seconds():6.1f} s", flush=True)

    def fail(self, sentence):
        with self.lock:
            self.failures.append(sentence)
            print(f"FAILED: {sentence}", flush=True)

    def run(self, tasks):
        tasks = [t for t in tasks if self.only in cases.name(t[2])]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(*t) for t in tasks]:
                done.result()
        return len(tasks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pal")
    parser.add_argument("stand_ins")
    parser.add_argument("suite", nargs="?", default="values", choices=["values", "streams", "pairs"])
    parser.add_argument("--table", help="write the table of README.md here")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--operators", action="store_true", help="write operators.txt anew")
    options = parser.parse_args()
    if cases.missing_values():
        print("no case has these values:", cases.missing_values())
        return 1
    clock = Clock()
    with Jobs(options.pal, options.stand_ins) as jobs:
        if missing := cases.missing_choices(jobs.call(["config", "--keys"], jobs.cpu())):
            print("no case makes these choices; give them a case, or a reason in cases.py:", missing)
            return 1
        matrix = Matrix(jobs, options.only)
        if options.suite == "values":
            tasks = [(matrix.compare, n, case, w) for n, (case, worlds) in enumerate(cases.DEFAULT) for w in worlds]
        elif options.suite == "streams":
            tasks = [(matrix.equal_weights, n, case, w) for n, (case, w) in enumerate(STREAMS)]
        else:
            tasks = [(matrix.compare, n, case, 1 + n % 3) for n, case in enumerate(cases.pairs())]
        count = matrix.run(tasks)
        if options.operators:
            with open(operators_test.LISTED, "w", encoding="utf-8") as f:
                f.writelines(f"{name}\n" for name in sorted(matrix.operators))
        if options.suite == "values" and not options.only:
            matrix.check_operators()
    if options.table:
        with open(options.table, "w", encoding="utf-8") as f:
            f.write("| case | ranks | streams | largest difference | allowed |\n|---|---|---|---|---|\n")
            f.writelines("| " + " | ".join(map(str, row)) + " |\n" for row in sorted(matrix.rows))
    print(f"{count} comparisons, {len(matrix.failures)} failed, {clock.seconds():.0f} s")
    return 1 if matrix.failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
