# shellcheck shell=bash
# common.sh: what setup, test and quickstart share. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
self=launch/$(basename "$0")
phases=() # "name seconds", in the order they ended

say() { printf '%s\n' "$*"; }
row() { printf '  %-16s %s\n' "$1" "$2"; }
die() { # CODE MESSAGE...
  printf '%s: %s\n' "$self" "${*:2}" >&2
  exit "$1"
}

now() { printf '%s' "${EPOCHREALTIME//[.,]/}"; } # microseconds; the decimal sign is the locale's
seconds() { printf '%d.%d s' $(($1 / 1000000)) $(($1 % 1000000 / 100000)); }
began=$(now)

phase() { # NAME COMMAND...: run it, remember how long it took. Never behind || or if: errexit would be off.
  local start name=$1
  start=$(now)
  shift
  "$@"
  phases+=("$name $(seconds $(($(now) - start)))")
}

print_phases() {
  local p
  for p in "${phases[@]}"; do row "${p% * s}" "$(printf '%9s' "${p#"${p% * s} "}")"; done
  row total "$(printf '%9s' "$(seconds $(($(now) - began)))")"
}

retry() { # COMMAND...: once more when it fails, as mirrors do now and then
  "$@" && return
  say "  failed; trying again in 5 s"
  sleep 5
  "$@"
}

jobs() { # compile jobs: one per core, but no more than one per 2 GB of free memory
  local cores free limit
  cores=$(nproc)
  free=$(awk '/^MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ && $((limit >> 31)) -lt $free ]]; then free=$((limit >> 31)); fi
  if ((free < cores)); then cores=$free; fi
  printf '%d' $((cores > 1 ? cores : 1))
}

architectures() { # for the GPUs of this machine, else three; 8.6 and 8.9 run the code of 8.0, 10.3 that of 10.0
  local own=
  if command -v nvidia-smi >/dev/null; then
    own=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u |
      sed -n 's/^[0-9][0-9]*$/&-real/p' | head -3 | paste -sd ';' -)
  fi
  printf '%s' "${own:-80-real;90-real;120}"
}

build() { # TESTS(ON|OFF) [TARGET...]: configure when something changed, then compile; the preset release, into build/
  local tests=$1 setup answers
  shift
  # shellcheck source=/dev/null
  source "$root/.deps/env"
  use_ccache
  # Ninja itself configures again when a CMake file changed; here only when our own answers or setup's packages did.
  setup="$(cat "$root/.deps/env" "${PAL_PYTHON%/bin/python}/pal-lock.sha256" 2>/dev/null || true)"
  answers="PAL_TESTS=$tests $setup"
  if [ ! -f "$root/build/build.ninja" ] || [ "$(cat "$root/build/.configured" 2>/dev/null)" != "$answers" ]; then
    # Another LibTorch or nvcc: CMake would keep the one that it found first.
    [[ "$(cat "$root/build/.configured" 2>/dev/null)" == *"$setup" ]] || rm -f "$root/build/CMakeCache.txt"
    rm -f "$root/build/.configured"
    (cd "$root" && cmake --preset release "-DPAL_TESTS=$tests" "-DPAL_CUDA_ARCHITECTURES=$(architectures)")
    printf '%s\n' "$answers" >"$root/build/.configured"
  fi
  (cd "$root" && cmake --build --preset release -j "$(jobs)" ${1:+--target "$@"})
}

use_ccache() { # paths relative to the checkout, so that a second clone builds from the cache of the first
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1
}
