# shellcheck shell=bash
# setup_plan.sh: what setup finds on a machine and what is left to install. Changes nothing. Sourced by setup.
#
# In:  sets (of packages), prefix, venv, stamp, cuda, check; PAL_TORCH_DIR, PAL_TORCH_FROM (remembered).
# Out: packages and missing (Debian); torch (folder with include/ and lib/), torch_from (user or empty);
#      wanted (sections of the lock that the environment is to get) and hash; nvcc (or empty) and cuda_says;
#      problems (what the user has to fix).
# shellcheck disable=SC2034,SC2154

section() { awk -v name="[$1]" '/^\[/ {on = $0 == name; next} on && !/^(#|$)/' "$root/launch/setup.d/versions.lock"; }
requirements() { # SECTION...: the lock's name=version as pip writes it
  local name
  for name in "$@"; do section "$name"; done | sed 's/=/==/' | sort -u
}
with_hashes() { # requirements, each with the sums of its files
  awk 'NR == FNR {sums[$1] = sums[$1] " --hash=sha256:" $2; next} {print $0 sums[$1]}' \
    "$root/launch/setup.d/hashes.lock" -
}
folders() { sed '/^$/d' <<<"${1//[:;]/$'\n'}"; } # a search path, one folder a line
problem() { problems+=("$1"); }
site() { printf '%s' "$venv"/lib/python3*/site-packages; }
is_torch() { [ -f "$1/share/cmake/Torch/TorchConfig.cmake" ]; }

can_install() { # may we install Debian packages? A password is asked for at a terminal only, never by --check.
  command -v apt-get >/dev/null || return 1
  ((EUID != 0)) || return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || { [ "$check" = no ] && [ -t 0 ] && sudo -v; }
}

find_python() { # sets python: 3.10 or later, able to make an environment
  for python in /usr/bin/python3 python3 python3.{14,13,12,11,10}; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && return
  done
  return 1
}

stands_in() { # PROBE: does this machine serve it by other means than the Debian package?
  local flags
  case $1 in
    /*) [ -e "$1" ] ;;
    python3-venv) find_python ;;
    *.h | *.hpp)
      mapfile -t flags < <(folders "${CMAKE_PREFIX_PATH:-}" | sed 's|.*|-I&/include|')
      "${CXX:-g++}" -E -x c++ "${flags[@]}" - <<<"#include <$1>" >/dev/null 2>&1
      ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

plan_packages() { # one question to dpkg for all of them
  local entry probe have name absent=()
  local -A probes=()
  while read -r entry probe; do
    probes[${entry%%=*}]=$probe
  done < <(for name in "${sets[@]}"; do section "debian.$name"; done)
  mapfile -t packages < <(printf '%s\n' "${!probes[@]}" | sort)
  have=$(dpkg-query -W -f ' ${db:Status-Abbrev}${Package} ' "${packages[@]}" 2>/dev/null || true)
  for name in "${packages[@]}"; do [[ $have == *" "?"i $name "* ]] || absent+=("$name"); done
  missing=("${absent[@]}")
  if ((${#absent[@]} == 0)) || can_install; then return; fi
  missing=()
  for name in "${absent[@]}"; do stands_in "${probes[$name]}" || missing+=("$name"); done
  ((${#missing[@]} == 0)) || problem "Debian packages: ${missing[*]}"
}

plan_torch() { # the user's LibTorch, named now or remembered; else the environment's
  local dir candidates
  torch='' wanted=()
  [ -z "${Torch_DIR:-}" ] || is_torch "$Torch_DIR/../../.." ||
    problem "a LibTorch in Torch_DIR: $Torch_DIR is not a folder .../share/cmake/Torch with a TorchConfig.cmake"
  mapfile -t candidates < <(folders "${Torch_DIR:+$Torch_DIR/../../..}:${CMAKE_PREFIX_PATH:-}")
  [ "$PAL_TORCH_FROM" != user ] || candidates+=("$PAL_TORCH_DIR")
  for dir in "${candidates[@]}"; do
    if is_torch "$dir"; then torch=$(cd "$dir" && pwd) && break; fi
  done
  torch_from=${torch:+user}
  [ -n "$torch" ] || wanted=(python)
  [ "$cuda" != pypi ] || wanted+=(python.cuda)
  if ((${#wanted[@]} == 0)); then return; fi
  hash=$(requirements "${wanted[@]}" | with_hashes | sha256sum)
  torch=${torch:-$(site)/torch}
  if [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ] && [ -x "$venv/bin/python" ] && is_torch "$torch"; then
    wanted=()
  else
    plan_environment
  fi
}

plan_environment() { # can it be made here?
  local there=$prefix free
  while [ ! -e "$there" ]; do there=$(dirname "$there"); done
  [ -w "$there" ] || problem "permission to write $there (choose another folder with --prefix DIR)"
  free=$(df -Pk "$there" | awk 'NR == 2 {print int($4 / 1048576)}')
  [ -d "$venv" ] || ((free >= 8)) || problem "disk space: $there has $free GB free, torch needs 8 (or --prefix DIR)"
  [[ " ${missing[*]} " == *" python3-venv "* ]] || find_python ||
    problem "a Python of 3.10 or later that can make an environment (Debian: python3-venv)"
}

plan_cuda() {
  local built candidates candidate version
  nvcc='' cuda_says="off: CPU only, as asked"
  [ "$cuda" != off ] || return 0
  built=$(section python | sed -n 's/^cuda-toolkit=\([0-9]*\).*/\1/p') # major version that torch is built for
  if is_torch "$torch"; then
    built=$(sed -n "s/^cuda.*= '\([0-9]*\)\..*/\1/p;s/.*+cu\([0-9]*\)[0-9]$/\1/p" \
      "$torch"/{version.py,build-version} 2>/dev/null || true)
    [ -f "$torch/lib/libtorch_cuda.so" ] || built=none
  fi
  cuda_says="CPU only: no nvcc found ($self --cuda pypi installs one)"
  candidates=("${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc)
  [ "$cuda" != pypi ] || candidates=()
  for candidate in "${candidates[@]}" "$(site)/nvidia/cu13/bin/nvcc"; do
    [ -x "$candidate" ] || continue
    version=$("$candidate" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    if [ "${version%%.*}" = "${built:-${version%%.*}}" ]; then
      nvcc=$candidate cuda_says="nvcc $version at $candidate"
      return
    fi
    cuda_says="CPU only: nvcc $version at $candidate does not fit this LibTorch (its CUDA: $built)"
  done
  if [[ " ${wanted[*]} " == *" python.cuda "* ]]; then
    cuda_says="nvcc from PyPI"
  elif [ "$cuda" != auto ]; then
    problem "CUDA. $cuda_says"
  fi
}

plan() {
  problems=()
  plan_packages
  plan_torch
  plan_cuda
}
