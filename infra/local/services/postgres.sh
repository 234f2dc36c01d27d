#!/usr/bin/env bash
# Runs a real PostgreSQL with pgvector for tests, from Debian's packages.
#
#   infra/local/services/postgres.sh install            installs it once; prints both versions
#   infra/local/services/postgres.sh start DIR [PORT]   serves an empty or existing DIR; prints the URL
#   infra/local/services/postgres.sh stop DIR           asks it to end and waits
#   infra/local/services/postgres.sh kill DIR           ends it and its children at once, for crash tests
#
# `start` prints postgres://mneme@127.0.0.1:PORT/mneme?sslmode=disable, the form of MNEME_TEST_PG. Without
# PORT a free one is taken. DIR holds the cluster, the log and the socket. `install` needs root where the
# packages are missing; the other commands work for anyone (root hands over to the user postgres, as the
# server refuses root). pgvector is built from Debian's own source of the next release, as the present one
# has none; nothing else of that release is installed.
#
# PG_BIN is the folder of another PostgreSQL's programs, one that has pgvector.
set -euo pipefail

bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
cache=${MNEME_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/mneme-services}

usage() { sed -n '2,7p' "${BASH_SOURCE[0]}" >&2; exit 2; }
die() { echo "postgres.sh: $*" >&2; exit 1; }
server() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
extension() { ls "$("$bin/pg_config" --sharedir)/extension/vector.control" 2>/dev/null; }

install() {
  if [ ! -x "$bin/postgres" ] || { ! extension >/dev/null && [ ! -e "$("$bin/pg_config" --includedir-server)/postgres.h" ]; }; then
    [ "$(id -u)" = 0 ] || die "PostgreSQL 15 is not installed; run 'postgres.sh install' as root once"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql-15 postgresql-server-dev-15 build-essential dpkg-dev >&2
  fi
  extension >/dev/null || vector
  "$bin/postgres" --version
  grep default_version "$(extension)"
}

# vector builds the extension from a source list of its own: those of the machine stay as they are.
vector() {
  [ "$(id -u)" = 0 ] || die "pgvector is not installed; run 'postgres.sh install' as root once"
  local from dir
  from=$(grep -hsoE '^(URIs: *|deb (\[[^]]*\] *)?)[a-z]+://[^ ]+' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list | grep -v security | head -1 | grep -oE '[a-z]+://[^ ]+' || true)
  [ -n "$from" ] || die "no Debian source stands under /etc/apt"
  mkdir -p "$cache"
  dir=$(mktemp -d "$cache/pgvector.XXXXXX")
  mkdir -p "$dir/parts" "$dir/lists/partial" "$dir/cache/archives/partial"
  printf 'Types: deb-src\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$from" >"$dir/parts/next.sources"
  local apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$dir/parts" -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update >&2
  (cd "$dir" && "${apt[@]}" source pgvector) >&2
  # OPTFLAGS: no instruction of the building machine alone.
  make -s -C "$dir"/pgvector-*/ OPTFLAGS= PG_CONFIG="$bin/pg_config" >&2
  make -s -C "$dir"/pgvector-*/ OPTFLAGS= PG_CONFIG="$bin/pg_config" install >&2
  rm -rf "$dir"
}

# answers PORT: whether something listens there.
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
alive() { [ -s "$1/data/postmaster.pid" ] && kill -0 "$(head -1 "$1/data/postmaster.pid")" 2>/dev/null; }

start() {
  local dir=$1 port=${2:-}
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  alive "$dir" && die "$dir is served already, by process $(head -1 "$dir/data/postmaster.pid")"
  install >/dev/null
  mkdir -p "$dir/data" "$dir/run"
  chmod 755 "$dir"
  if [ "$(id -u)" = 0 ]; then chown postgres: "$dir/data" "$dir/run"; fi
  if [ ! -e "$dir/data/PG_VERSION" ]; then
    server "$bin/initdb" -D "$dir/data" -U mneme --auth=trust --locale=C.UTF-8 >"$dir/initdb.log"
  fi
  if [ -z "$port" ]; then
    for _ in {1..50}; do port=$((20000 + RANDOM % 12000)); answers "$port" || break; done
  fi
  (cd / && server "$bin/pg_ctl" -D "$dir/data" -s -w -t 120 -l "$dir/run/log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir/run -c shared_buffers=512MB -c maintenance_work_mem=512MB ${PG_OPTIONS:-}" start) >&2 || { tail -n 20 "$dir/run/log" >&2; die "PostgreSQL did not start"; }
  local sql=(server "$bin/psql" -h 127.0.0.1 -p "$port" -U mneme -qtA)
  if ! (cd / && "${sql[@]}" -c "select 1 from pg_database where datname = 'mneme'" postgres | grep -q 1); then
    (cd / && "${sql[@]}" -c 'create database mneme' postgres)
  fi
  echo "postgres://mneme@127.0.0.1:$port/mneme?sslmode=disable"
}

stop() { ! alive "$1" || (cd / && server "$bin/pg_ctl" -D "$1/data" -s -m fast -w -t 60 stop) >&2; }

killed() {
  local pid
  alive "$1" || return 0
  pid=$(head -1 "$1/data/postmaster.pid")
  # shellcheck disable=SC2046 # a list of numbers
  kill -9 "$pid" $(ps -o pid= --ppid "$pid") 2>/dev/null || true
  # Until its parent has taken note of its end, it stands in the way of the next start.
  for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
  rm -f "$1/data/postmaster.pid"
}

[ $# -ge 1 ] || usage
case $1 in
  install) install ;;
  start) [ $# -ge 2 ] || usage; start "$2" "${3:-}" ;;
  stop) [ $# -eq 2 ] || usage; stop "$(cd "$2" && pwd)" ;;
  kill) [ $# -eq 2 ] || usage; killed "$(cd "$2" && pwd)" ;;
  *) usage ;;
esac
