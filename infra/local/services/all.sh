#!/usr/bin/env bash
# Runs every server that tests talk to: an S3 server, PostgreSQL with pgvector, OpenSearch.
#
#   infra/local/services/all.sh start DIR    starts those that do not run; prints a line "export NAME=URL" for each
#   infra/local/services/all.sh stop DIR     ends them; the data stays in DIR
#
#   eval "$(infra/local/services/all.sh start ~/.cache/mneme-run)" && make test
#
# A second start takes the servers that run as they are. The real Ollama is apart (ollama.sh): its first build
# takes minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -eq 2 ] || { sed -n '2,6p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$2"
dir=$(cd "$2" && pwd)

# each NAME FOLDER PID_FILE COMMAND…: prints the URL that the command printed when the server was started.
each() {
  local name=$1 folder=$2 pid=$3
  shift 3
  mkdir -p "$dir/$folder"
  chmod 755 "$dir" "$dir/$folder"
  if ! { [ -s "$dir/$folder/$pid" ] && kill -0 "$(head -1 "$dir/$folder/$pid")" 2>/dev/null && [ -s "$dir/$folder.url" ]; }; then
    "$@" >"$dir/$folder.url.new"
    mv "$dir/$folder.url.new" "$dir/$folder.url"
  fi
  echo "export $name=$(tail -1 "$dir/$folder.url")"
}

case $1 in
  start)
    each MNEME_TEST_S3 s3 pid "$here/s3.sh" versitygw start "$dir/s3"
    each MNEME_TEST_PG pg data/postmaster.pid "$here/postgres.sh" start "$dir/pg"
    each MNEME_TEST_OS os pid "$here/opensearch.sh" start "$dir/os" ;;
  stop)
    for s in "s3.sh versitygw" postgres.sh opensearch.sh; do
      case $s in s3*) d=s3 ;; postgres*) d=pg ;; *) d=os ;; esac
      # shellcheck disable=SC2086 # the server's name is a word of its own
      [ ! -d "$dir/$d" ] || "$here"/$s stop "$dir/$d" || true
      rm -f "$dir/$d.url"
    done ;;
  *) sed -n '2,6p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
