#!/usr/bin/env bash
# Runs a real S3 server for tests, built from its Go module.
#
#   infra/local/services/s3.sh versitygw|minio version          prints its name and version
#   infra/local/services/s3.sh versitygw|minio install          builds it once; prints the program's path
#   infra/local/services/s3.sh versitygw|minio start DIR [PORT] serves an empty or existing DIR; prints the endpoint
#   infra/local/services/s3.sh versitygw|minio stop DIR         asks it to end and waits
#   infra/local/services/s3.sh versitygw|minio kill DIR         ends it at once, for crash tests
#
# `start` prints http://KEY:SECRET@127.0.0.1:PORT, the form of MNEME_TEST_S3. Without PORT a free one is
# taken. DIR holds the data, the log and the process id. Programs stand in the folder named by
# MNEME_SERVICES, by default $XDG_CACHE_HOME/mneme-services (~/.cache/mneme-services).
#
# MinIO is under the AGPL: it is only ever a process of its own, never linked. What the environment says
# to it (MINIO_NOTIFY_WEBHOOK_…) is passed on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# The last state of MinIO that its module publishes; the project is archived and gets no later one.
minio_version=${MINIO_VERSION:-v0.0.0-20260212201848-7aac2a2c5b7c}
key=mneme secret=mneme-test-secret

usage() { sed -n '2,8p' "${BASH_SOURCE[0]}" >&2; exit 2; }
die() { echo "s3.sh: $*" >&2; exit 1; }

[ $# -ge 2 ] || usage
server=$1 action=$2
case $server in
  versitygw)
    package=github.com/versity/versitygw/cmd/versitygw
    # The version that go.mod pins for the endpoint inside `mem up`: tests meet the same code.
    version=$(cd "$root" && go list -m -f '{{.Version}}' github.com/versity/versitygw) ;;
  minio) package=github.com/minio/minio version=$minio_version ;;
  *) usage ;;
esac
cache=${MNEME_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/mneme-services}
program=$cache/$server-$version

install() {
  if [ ! -x "$program" ]; then
    mkdir -p "$cache"
    local build
    build=$(mktemp -d "$cache/build.XXXXXX")
    (cd / && GOBIN=$build GOFLAGS=-trimpath go install "$package@$version") >&2 || { rm -rf "$build"; die "could not build $package@$version"; }
    mv "$build/$server" "$program" # whole or not at all
    rm -rf "$build"
  fi
  echo "$program"
}

# answers PORT: whether something listens there.
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

launch() { # DIR PORT
  case $server in
    versitygw)
      # The sidecar keeps metadata in plain files: not every file system has extended attributes.
      mkdir -p "$1/data" "$1/sidecar" "$1/versions"
      ROOT_ACCESS_KEY=$key ROOT_SECRET_KEY=$secret setsid "$program" \
        --port "127.0.0.1:$2" --region us-east-1 --quiet posix --sidecar "$1/sidecar" --versioning-dir "$1/versions" "$1/data" >>"$1/log" 2>&1 & ;;
    minio)
      mkdir -p "$1/data"
      MINIO_ROOT_USER=$key MINIO_ROOT_PASSWORD=$secret MINIO_BROWSER=off setsid "$program" \
        server --quiet --address "127.0.0.1:$2" "$1/data" >>"$1/log" 2>&1 & ;;
  esac
  echo $! >"$1/pid"
}

alive() { [ -s "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

start() {
  local dir=$1 port=${2:-} fixed=${2:-}
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  alive "$dir" && die "$dir is served already, by process $(cat "$dir/pid")"
  install >/dev/null
  # Another process may take a port between the look and the start; then the next one is tried.
  for _ in 1 2 3 4 5; do
    if [ -z "$fixed" ]; then
      for _ in {1..50}; do port=$((20000 + RANDOM % 12000)); answers "$port" || break; done
    elif answers "$port"; then
      die "port $port is taken"
    fi
    launch "$dir" "$port"
    for _ in {1..300}; do # at most 30 s, for a machine that is busy building
      alive "$dir" || break
      if answers "$port"; then echo "http://$key:$secret@127.0.0.1:$port"; return; fi
      sleep 0.1
    done
    [ -z "$fixed" ] || break
  done
  tail -n 20 "$dir/log" >&2
  die "$server did not start"
}

finish() { # SIGNAL DIR
  alive "$2" || { rm -f "$2/pid"; return 0; }
  kill "-$1" "$(cat "$2/pid")"
  for _ in {1..100}; do alive "$2" || { rm -f "$2/pid"; return 0; }; sleep 0.1; done
  die "process $(cat "$2/pid") goes on after 10 s"
}

case $action in
  version) echo "$server $version" ;;
  install) install ;;
  start) [ $# -ge 3 ] || usage; start "$3" "${4:-}" ;;
  stop) [ $# -eq 3 ] || usage; finish TERM "$3" ;;
  kill) [ $# -eq 3 ] || usage; finish KILL "$3" ;;
  *) usage ;;
esac
