#!/usr/bin/env bash
# Runs every server that tests talk to: two S3 servers (versitygw, MinIO), PostgreSQL with pgvector, OpenSearch.
#
#   infra/local/services/all.sh start DIR [s3] [minio] [pg] [os]
#                                            starts those that do not run, all or the named; prints "export NAME=URL" for each
#   infra/local/services/all.sh env DIR      the same lines for those of DIR that answer; starts none
#   infra/local/services/all.sh versions     what MNEME_TEST_S3, _MINIO, _PG and _OS name, a line each with its version
#   infra/local/services/all.sh stop DIR     ends them; the data stays in DIR
#
#   eval "$(infra/local/services/all.sh start ~/.cache/mneme-run)" && make test
#
# A second start takes the servers that run as they are. What is set already is left: `env` prints no line for
# it. The first start builds MinIO (about 7 minutes) and installs the others (5); all of it is kept in the
# folder named by MNEME_SERVICES, by default ~/.cache/mneme-services. The real Ollama is apart (ollama.sh): its
# first build takes minutes too.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,10p' "${BASH_SOURCE[0]}" >&2; exit 2; }

# name, folder, file with the process id, command: one server a line.
servers() {
  cat <<'LIST'
MNEME_TEST_S3 s3 pid s3.sh versitygw
MNEME_TEST_MINIO minio pid s3.sh minio
MNEME_TEST_PG pg data/postmaster.pid postgres.sh
MNEME_TEST_OS os pid opensearch.sh
LIST
}

# runs DIR FOLDER PID_FILE: the server was started from DIR, lives, and something listens on its port.
runs() {
  local port
  [ -s "$1/$2/$3" ] && [ -s "$1/$2.url" ] && kill -0 "$(head -1 "$1/$2/$3")" 2>/dev/null || return 1
  port=$(tail -1 "$1/$2.url" | sed -E 's#.*127\.0\.0\.1:([0-9]+).*#\1#')
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

start() { # DIR [FOLDER…]
  local name folder pid script server
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  shift
  while read -r name folder pid script server <&4; do
    [ $# = 0 ] || [[ " $* " == *" $folder "* ]] || continue
    mkdir -p "$dir/$folder"
    chmod 755 "$dir" "$dir/$folder"
    if ! runs "$dir" "$folder" "$pid"; then
      # shellcheck disable=SC2086 # no server, no word
      "$here/$script" $server start "$dir/$folder" >"$dir/$folder.url.new"
      mv "$dir/$folder.url.new" "$dir/$folder.url"
    fi
    echo "export $name=$(tail -1 "$dir/$folder.url")"
  done 4< <(servers)
}

env_lines() {
  local name folder pid rest
  while read -r name folder pid rest; do
    [ -n "${!name:-}" ] || ! runs "$1" "$folder" "$pid" || echo "export $name=$(tail -1 "$1/$folder.url")"
  done < <(servers)
}

stop() {
  local name folder pid script server
  while read -r name folder pid script server <&4; do
    # shellcheck disable=SC2086
    [ ! -d "$1/$folder" ] || "$here/$script" $server stop "$1/$folder" || true
    rm -f "$1/$folder.url"
  done 4< <(servers)
}

# versions asks the servers themselves where they tell; an S3 server says its name alone, and the script
# knows which version it builds.
versions() {
  local psql=${PG_BIN:-/usr/lib/postgresql/15/bin}/psql url server
  for url in "${MNEME_TEST_S3:-}" "${MNEME_TEST_MINIO:-}"; do
    [ -n "$url" ] || continue
    server=$(curl -s -m 5 -o /dev/null -D - "http://${url##*@}" | tr -d '\r' | sed -n 's/^[Ss]erver: *//p' | head -1) || true
    case $server in
      VERSITYGW*) "$here/s3.sh" versitygw version ;;
      MinIO*) "$here/s3.sh" minio version ;;
      *) echo "S3: ${server:-no answer}" ;;
    esac
  done
  [ -z "${MNEME_TEST_PG:-}" ] || "$psql" -qtA -c "select 'PostgreSQL ' || current_setting('server_version')" \
    -c "select 'pgvector ' || default_version from pg_available_extensions where name = 'vector'" "$MNEME_TEST_PG" || echo "PostgreSQL: no answer"
  [ -z "${MNEME_TEST_OS:-}" ] || curl -s -m 5 "$MNEME_TEST_OS" | tr -d ' \n' | sed -nE 's/.*"number":"([^"]+)".*"lucene_version":"([^"]+)".*/OpenSearch \1, Lucene \2\n/p' | grep . || echo "OpenSearch: no answer"
}

case ${1:-} in
  start) [ $# -ge 2 ] || usage; start "${@:2}" ;;
  env) [ $# -eq 2 ] || usage; env_lines "$2" ;;
  stop) [ $# -eq 2 ] || usage; stop "$2" ;;
  versions) versions ;;
  *) usage ;;
esac
