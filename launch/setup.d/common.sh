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

build() { # TESTS(ON|OFF) [TARGET...]: configure when something changed, then compile; into build/
  local tests=$1 args answers
  shift
  # shellcheck source=/dev/null
  source "$root/.deps/env"
  args=(-G Ninja -S "$root" -B "$root/build" "-DPAL_TESTS=$tests" "-DPAL_TORCH_DIR=$PAL_TORCH_DIR"
    "-DPAL_NCCL_DIR=$PAL_NCCL_DIR" "-DPAL_PYTHON=$PAL_PYTHON" -DPAL_CUDA=OFF)
  if [ -n "$PAL_NVCC" ]; then args+=(-DPAL_CUDA=ON "-DCMAKE_CUDA_COMPILER=$PAL_NVCC"); fi
  # Ninja itself configures again when a CMake file changed; here only when our own answers did, or what setup installed.
  answers="${args[*]} $(cat "${PAL_PYTHON%/bin/python}/pal-lock.sha256" 2>/dev/null || true)"
  if [ ! -f "$root/build/build.ninja" ] || [ "$(cat "$root/build/.configured" 2>/dev/null)" != "$answers" ]; then
    rm -f "$root/build/.configured"
    cmake "${args[@]}"
    printf '%s\n' "$answers" >"$root/build/.configured"
  fi
  ninja -C "$root/build" -j "$(jobs)" "$@"
}
