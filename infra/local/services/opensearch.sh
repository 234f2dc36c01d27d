#!/usr/bin/env bash
# Runs a real OpenSearch for tests, from its Maven artefacts.
#
#   infra/local/services/opensearch.sh install [security]        fetches it once; prints its version
#   infra/local/services/opensearch.sh start DIR [PORT] [security]  serves an empty or existing DIR; prints its URL
#   infra/local/services/opensearch.sh stop DIR                  asks it to end and waits
#   infra/local/services/opensearch.sh kill DIR                  ends it at once, for crash tests
#
# `start` prints http://127.0.0.1:PORT, the form of MNEME_TEST_OS. PORT 0, or none, takes a free one. DIR holds
# the data, the log, the settings (config/opensearch.yml) and the process id. It needs JDK 17 and Maven, which
# it installs from Debian's packages when it is root; what it fetches stands in the folder named by MNEME_SERVICES, by default ~/.cache/mneme-services.
#
# With `security` the node has the security plugin: JSON Web Tokens signed by HS256 with the key of
# DIR/config/jwt.key (base64; claims `sub` and `roles`), and the user admin with the password admin. A
# configuration for tests alone: plain HTTP, a certificate of its own for the transport.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/opensearch" && pwd)
jdk=${JAVA_HOME:+$JAVA_HOME/bin/}
version=$(sed -n 's:.*<opensearch>\(.*\)</opensearch>.*:\1:p' "$here/pom.xml")

usage() { sed -n '2,7p' "${BASH_SOURCE[0]}" >&2; exit 2; }
die() { echo "opensearch.sh: $*" >&2; exit 1; }
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
alive() { [ -s "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null && grep -qz "$1" "/proc/$(cat "$1/pid")/cmdline" 2>/dev/null; }

# lib is the folder of the jars, named by all that they are made of.
cache=${MNEME_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/mneme-services}
lib() { echo "$cache/opensearch-$version${1:+-$1}-$(cat "$here/pom.xml" "$here/Server.java" | cksum | cut -d' ' -f1)"; }

install() {
  local plugin=$1 to dir zip profile=() jar name
  to=$(lib "$plugin")
  if [ ! -d "$to" ]; then
    if ! command -v "${jdk}javac" >/dev/null || ! command -v mvn >/dev/null; then
      [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "needs a JDK 17 and Maven (packages openjdk-17-jdk-headless and maven); as root it installs them"
      apt-get update -qq >&2
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jdk-headless maven curl >&2
    fi
    mkdir -p "$cache"
    dir=$(mktemp -d "$cache/opensearch.XXXXXX")
    [ -z "$plugin" ] || profile=("-P$plugin")
    mvn -q -B -ntp -f "$here/pom.xml" ${profile[@]+"${profile[@]}"} dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir" >&2 || die "Maven could not fetch OpenSearch $version"
    if [ -n "$plugin" ]; then
      zip=$(ls "$dir"/opensearch-security-*.zip)
      mkdir "$dir/plugin"
      (cd "$dir/plugin" && "${jdk}jar" xf "$zip")
      rm "$zip"
      for jar in "$dir"/plugin/*.jar; do # a library that the server has is the server's
        name=$(basename "$jar" | sed -E 's/-[0-9][0-9A-Za-z.+_-]*\.jar$//')
        compgen -G "$dir/$name-[0-9]*.jar" >/dev/null || mv "$jar" "$dir/"
      done
      sed -n 's/^classname=//p' "$dir/plugin/plugin-descriptor.properties" >"$dir/classes"
      mv "$dir/plugin/config" "$dir/config"
      rm -rf "$dir/plugin"
    fi
    mkdir "$dir/out"
    "${jdk}javac" -nowarn -proc:none -cp "$dir/*" -d "$dir/out" "$here/Server.java" >&2
    "${jdk}jar" cf "$dir/server.jar" -C "$dir/out" .
    rm -rf "$dir/out"
    mv "$dir" "$to"
  fi
  echo "OpenSearch $version${plugin:+ with the $plugin plugin}"
}

# secure writes the plugin's first configuration; what is there stays.
secure() {
  local dir=$1/config from=$2/config store=(-storetype PKCS12 -storepass changeit) key
  [ ! -d "$dir/opensearch-security" ] || return 0
  mkdir -p "$dir"
  "${jdk}keytool" -genkeypair -alias node -keyalg RSA -validity 3650 -dname CN=node-1 -ext SAN=ip:127.0.0.1 "${store[@]}" -keystore "$dir/node.p12" 2>/dev/null
  "${jdk}keytool" -exportcert -alias node "${store[@]}" -keystore "$dir/node.p12" -rfc 2>/dev/null |
    "${jdk}keytool" -importcert -noprompt -alias node "${store[@]}" -keystore "$dir/trust.p12" 2>/dev/null
  key=$(head -c 64 /dev/urandom | base64 -w0)
  (umask 077 && echo "$key" >"$dir/jwt.key")
  cat >>"$dir/opensearch.yml" <<YML
plugins.security.ssl.http.enabled: false
plugins.security.ssl.transport.keystore_type: PKCS12
plugins.security.ssl.transport.keystore_filepath: node.p12
plugins.security.ssl.transport.keystore_password: changeit
plugins.security.ssl.transport.truststore_type: PKCS12
plugins.security.ssl.transport.truststore_filepath: trust.p12
plugins.security.ssl.transport.truststore_password: changeit
plugins.security.ssl.transport.enforce_hostname_verification: false
plugins.security.nodes_dn: ["CN=node-1"]
plugins.security.authcz.admin_dn: ["CN=admin"]
plugins.security.allow_default_init_securityindex: true
plugins.security.restapi.roles_enabled: ["all_access"]
plugins.security.audit.type: noop
YML
  cp -R "$from" "$dir/opensearch-security"
  rm -f "$dir"/opensearch-security/{opensearch.yml.example,whitelist.yml}
  cat >"$dir/opensearch-security/config.yml" <<YML
_meta: {type: config, config_version: 2}
config:
  dynamic:
    http: {anonymous_auth_enabled: false}
    authc:
      jwt:
        http_enabled: true
        transport_enabled: false
        order: 0
        http_authenticator: {type: jwt, challenge: false, config: {signing_key: "$key", jwt_header: Authorization, subject_key: sub, roles_key: roles}}
        authentication_backend: {type: noop}
      basic:
        http_enabled: true
        transport_enabled: true
        order: 1
        http_authenticator: {type: basic, challenge: true}
        authentication_backend: {type: intern}
YML
  chmod -R go-rwx "$dir"
}

# ready PORT: the node answers with a health; one that asks for credentials says so by its plugin.
ready() {
  local body
  body=$(curl -s -m 5 "http://127.0.0.1:$1/_cluster/health" || true)
  [[ $body =~ \"status\":\"(yellow|green)\" ]] && return
  [[ $(curl -s -m 5 "http://127.0.0.1:$1/_plugins/_security/health" || true) == *'"status":"UP"'* ]]
}

start() {
  local dir=$1 port=${2:-0} plugin=${3:-} jars classes=() fixed=${2:-0}
  mkdir -p "$dir/logs" "$dir/config" "$dir/tmp"
  dir=$(cd "$dir" && pwd)
  ! alive "$dir" || die "$dir is served already, by process $(cat "$dir/pid")"
  install "$plugin" >/dev/null
  jars=$(lib "$plugin")
  if [ -n "$plugin" ]; then
    secure "$dir" "$jars"
    mapfile -t classes <"$jars/classes"
  fi
  if [ "$port" = 0 ]; then
    for _ in {1..50}; do
      port=$((20000 + RANDOM % 12000))
      answers "$port" || answers "$((port + 1))" || break
    done
  else # a process that was killed may not have let go of it yet
    for _ in {1..50}; do answers "$port" || break; sleep 0.1; done
    ! answers "$port" || die "port $port is taken"
  fi
  setsid "${jdk}java" -Xms512m -Xmx1g -XX:MaxDirectMemorySize=512m -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
    -Djava.io.tmpdir="$dir/tmp" -Dio.netty.noUnsafe=true -Dio.netty.noKeySetOptimization=true -Dlog4j2.disable.jmx=true \
    -Djava.locale.providers=SPI,COMPAT ${OPENSEARCH_JAVA_OPTS:-} -cp "$jars/*" \
    Server "$dir" "$port" ${classes[@]+"${classes[@]}"} </dev/null >>"$dir/logs/log" 2>&1 &
  echo $! >"$dir/pid"
  for _ in {1..900}; do # at most 180 s, for a machine that is busy building
    alive "$dir" || break
    if ready "$port"; then echo "http://127.0.0.1:$port"; return; fi
    sleep 0.2
  done
  tail -n 20 "$dir/logs/log" >&2
  die "OpenSearch did not start${fixed:+ on port $port}"
}

finish() { # SIGNAL DIR
  local dir
  dir=$(cd "$2" && pwd)
  alive "$dir" || { rm -f "$dir/pid"; return 0; }
  kill "-$1" "$(cat "$dir/pid")"
  for _ in {1..300}; do alive "$dir" || { rm -f "$dir/pid"; return 0; }; sleep 0.1; done
  die "process $(cat "$dir/pid") goes on after 30 s"
}

[ $# -ge 1 ] || usage
case $1 in
  install) install "${2:-}" ;;
  start) [ $# -ge 2 ] || usage; start "$2" "${3:-0}" "${4:-}" ;;
  stop) [ $# -eq 2 ] || usage; finish TERM "$2" ;;
  kill) [ $# -eq 2 ] || usage; finish KILL "$2" ;;
  *) usage ;;
esac
