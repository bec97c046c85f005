# shellcheck shell=bash
# What the tools share; sourced, not run.
# tools/kafka and tools/postgres define stop_instance DIR, show_instance DIR and log_file [N].
set -euo pipefail
shopt -s nullglob
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
tool=${0##*/}
state=$root/.run/$tool

say() { printf '%s: %s\n' "$tool" "$*" >&2; }
die() { say "${@:2}"; exit "$1"; }
usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# One changing command at a time. The script itself is the lock, so no lock file is left behind.
lock() {
  exec 9<"$0"
  flock -n 9 || { say "waiting for another tools/$tool"; flock 9; }
}

# A pid alone may be another process's by now: with its start time and the boot it names one process.
identity() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra stat <<<"${stat##*) }" # the name before ")" may hold spaces
  [[ ${stat[0]} != Z ]] && echo "$1 ${stat[19]} $(</proc/sys/kernel/random/boot_id)"
}
alive() { # FILE: prints the pid if the recorded process still runs
  [[ -s $1 ]] && [[ $(identity "$(cut -d' ' -f1 "$1")") == "$(<"$1")" ]] && cut -d' ' -f1 "$1"
}
spawn() { # PLACE FOLDER COMMAND...: starts a server in FOLDER, its pid and log in PLACE
  # Its own session, or a Ctrl-C would reach it later; without the lock, or it would hold it all its life.
  (cd "$2" && exec setsid "${@:3}") </dev/null >>"$1/log" 2>&1 9<&- &
  identity $! >"$1/pid" || :
}
stop() { # SIGNAL SECONDS FILE...: ends the recorded processes, with KILL once the time is over
  local end=$((SECONDS + $2)) file pid
  for file in "${@:3}"; do if pid=$(alive "$file"); then kill "-$1" "$pid" || :; fi; done
  for file in "${@:3}"; do
    while pid=$(alive "$file"); do
      ((SECONDS < end)) || { say "pid $pid does not stop, killing it"; kill -KILL "$pid" || :; }
      sleep 0.1
    done
    rm -f "$file"
  done
}

# Until it is disarmed, an end for whatever reason undoes what this run began: its children and, if new, the instance.
arm() { began=$1; trap 'exit 130' INT; trap 'exit 143' TERM HUP; trap undo EXIT; }
undo() {
  local pids
  mapfile -t pids < <(jobs -p)
  if ((${#pids[@]})); then kill -KILL "${pids[@]}" 2>/dev/null || :; wait "${pids[@]}" 2>/dev/null || :; fi
  if [[ $began == new ]]; then stop_instance "$dir"; rmdir "$state" 2>/dev/null || :; fi
}
failed() { # LOG MESSAGE
  say "the end of $1:"
  tail -n 20 "$1" >&2
  die 1 "$2"
}

# Below the range that the kernel gives to outgoing connections: a port stays free while its server is down.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    grep -qsw "$port" "$root"/.run/*/*/{,*/}ports /dev/null || (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}
secret() { head -c 256 /dev/urandom | base64 -w0 | tr -dc A-Za-z0-9 | cut -c1-"$1"; }

get() { # PACKAGE...: installs Debian's packages, or says that it can't
  command -v apt-get >/dev/null || die 69 "missing: $* (Debian's names); there is no apt-get here to install them"
  ((EUID == 0)) || die 69 "missing: $*; as root: apt-get update && apt-get install $*"
  say "installing $* with apt-get"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } \
    </dev/null >&2 || die 69 "missing: $*; apt-get could not install them (see above; is there a network?)"
}

find_java() { # the first that is new enough, as $java
  for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java)" /usr/lib/jvm/*/bin/java; do
    if [[ -x $java && $("$java" -version 2>&1) =~ version\ \"([0-9]+) ]] &&
      ((BASH_REMATCH[1] >= 17)) && "${@:-true}"; then return; fi
  done
  return 1
}
# WHAT PACKAGE [TEST...]: a Java that passes the test as $java, and what tools/TOOL.d/pom.xml lists as $jars.
class_path() {
  local jar found cached out need=()
  cached=$root/.run/cache/$tool-$(cksum <"$root/tools/$tool.d/pom.xml" | cut -d' ' -f1).classpath
  if [[ -e $cached ]]; then IFS=: read -ra found <"$cached"; else found=(none); fi
  for jar in "${found[@]}"; do if [[ ! -e $jar ]]; then found=(); break; fi; done
  find_java "${@:3}" || need+=("$2")
  ((${#found[@]})) || command -v mvn >/dev/null || need+=(maven)
  if ((${#need[@]})); then get "${need[@]}"; fi
  find_java "${@:3}" || die 69 "missing: Java 17 or newer (this Debian's $2 is older)"
  if ((${#found[@]} == 0)); then
    say "fetching $1 with Maven"
    mkdir -p "${cached%/*}"
    out=$(mvn -q -B -f "$root/tools/$tool.d/pom.xml" dependency:build-classpath -Dmdep.outputFile="$cached.new" </dev/null 2>&1) || {
      tail -n 15 <<<"$out" >&2
      die 69 "Maven could not fetch $1 (above): it needs Maven Central, or a ~/.m2 with what tools/$tool.d/pom.xml lists"
    }
    echo >>"$cached.new" # `read` wants a whole line
    mv "$cached.new" "$cached"
  fi
  # shellcheck disable=SC2034 # for the tool
  jars=$(<"$cached")
}
# For programs that end soon: starting fast matters more than running fast.
# shellcheck disable=SC2034 # for the tools
quick=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m)

# shellcheck disable=SC2034 # each tool uses its own
parse() { # ALLOWED COUNT ARGUMENT...: options into variables of their names, up to COUNT others into $args
  local allowed=" $1 " count=$2
  name=default all='' brokers=1 tls='' sasl='' fast='' args=()
  shift 2
  while (($#)); do
    case $1 in
      -h | --help) usage; exit 0 ;;
      -*) [[ $allowed == *" $1 "* ]] || die 64 "unexpected: $1; see tools/$tool --help" ;;
    esac
    case $1 in
      --name | --brokers) (($# > 1)) || die 64 "$1 needs a value"; declare -g "${1#--}=$2"; shift ;;
      -*) declare -g "${1#--}=yes" ;;
      *) args+=("$1") ;;
    esac
    shift
  done
  ((${#args[@]} <= count)) || die 64 "unexpected: ${args[count]}; see tools/$tool --help"
  [[ $name =~ ^[A-Za-z0-9_-]+$ ]] || die 64 "--name takes letters, digits, _ and -"
  dir=$state/$name
}
known() { [[ -e $dir/env ]] || die 1 "'$name' is not up; start it with: tools/$tool up --name $name"; }

# A file `env` marks an instance that came up once; one without it is the rest of a failed start.
claim() { # SHAPE: succeeds if the instance is to be made
  if [[ -e $dir/env ]]; then
    [[ $(<"$dir/shape") == "$1" ]] && return 1
    die 1 "'$name' is up as '$(<"$dir/shape")', not '$1'; first: tools/$tool down --name $name"
  fi
  if [[ -e $dir ]]; then say "clearing what a broken start left"; stop_instance "$dir"; fi
  arm new
  mkdir -p "$dir"
  echo "$1" >"$dir/shape"
}

common() { # the commands that both tools have
  local each one rc=0
  case $1 in
    down | status) parse '--name --all' 0 "${@:2}" ;;
    env) parse --name 0 "${@:2}"; known; cat "$dir/env"; return ;;
    logs) parse --name 1 "${@:2}"; known; file=$(log_file "${args[@]}") || exit; cat "$file"; return ;;
    -h | --help | help) usage; return ;;
    *) usage >&2; exit 64 ;;
  esac
  if [[ $1 == down ]]; then lock; fi
  if [[ $all ]]; then each=("$state"/*); else each=("$dir"); fi
  for one in "${each[@]}"; do
    if [[ $1 == status ]]; then
      if [[ -e $one/env ]]; then show_instance "$one" || rc=1; else echo "${one##*/} down"; rc=1; fi
    elif [[ -e $one ]]; then
      say "stopping '${one##*/}'"
      stop_instance "$one"
    else
      say "'${one##*/}' is not up"
    fi
  done
  if [[ $1 == down ]]; then rmdir "$state" 2>/dev/null || :; fi
  return "$rc"
}
