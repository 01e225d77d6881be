#!/usr/bin/env bash
# Horus on several hosts: three of them, made of Linux namespaces on this machine. Each has its own name, network address,
# processes and shared memory, and its own /tmp and home, the only places that it can write to; they reach each other by TCP
# alone. Checks that programs yield the bytes of one process there, that only rank 0's host needs the pictures, and that a job
# ends when a host dies. Takes half a minute, needs root, and says so in one line where it cannot run.
#
#   scripts/hosts.sh BIN     BIN: folder of programs built with the feature `mpi`, such as target/release
#   scripts/hosts.sh --clusters MBIT_S,MS BIN HOSTS COMMAND...
#                            runs a command (as /mnt/bin/blocks; NAME=VALUE before it is for all
#                            ranks) on HOSTS (as h0,h2), a rank each, instead: h0 and h1 are one
#                            cluster, h2 and h3 another, joined by a link of this rate and latency (scripts/slow_link.py)
set -euo pipefail

untested() {
  [ -z "${link:-}" ] || fail "$@"
  echo "several hosts: not tested here: $*"
  exit 0
}
fail() { echo "several hosts: failed: $*" >&2; exit 1; }

if [ "${1:-}" != --inside ]; then
  link="" programs=(convrot conv2d convuv horus jacobi)
  if [ "${1:-}" = --clusters ] && [ $# -gt 4 ]; then link=$2 programs=(); shift 2; fi
  [ $# = 1 ] || [[ $link = *,* ]] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
  for program in "${programs[@]}"; do [ -x "$1/$program" ] || fail "no $program in $1"; done
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] || untested "needs root on Linux"
  for tool in mpirun unshare nsenter ip ${link:+python3}; do command -v $tool >/dev/null || untested "no $tool"; done
  spaces=(unshare --net --uts --ipc --mount --pid --fork --mount-proc --kill-child=KILL)
  "${spaces[@]}" true 2>/dev/null || untested "namespaces cannot be made"
  # The first host holds the others. However it ends, its processes, links and files end with it: nothing needs to be removed.
  "${spaces[@]}" bash "$(realpath "$0")" --inside "$link" "$(realpath "$1")" "${@:2}" &
  first=$!
  trap 'kill -KILL $first 2>/dev/null || true' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  wait $first && exit 0 || exit $?
fi

# From here on within the first host, h0.
link=$2 bin=$3
shift 3
count=$([ -n "$link" ] && echo 4 || echo 3)
scripts=$(realpath "$(dirname "$0")")
assets=$scripts/../assets
for name in $(env | sed -n 's/^\(\(HORUS\|OMPI\|PRTE\|PMIX\|PMI\|XDG\|MPICH\|HYDRA\)_[A-Za-z_]*\)=.*/\1/p') TMPDIR; do
  unset "$name"
done
export HOME=/tmp HORUS_PROFILE=default HORUS_RANKS=all HORUS_THREADS=1
net=10.77.0

# Files shared by all hosts, read-only: programs, input pictures, host names, and a substitute for ssh: `agent HOST COMMAND`
# runs a command on another host, without this one's environment.
share() {
  mkdir /mnt/bin /mnt/assets
  mount --bind "$bin" /mnt/bin
  mount --bind "$assets" /mnt/assets
  cp "$scripts/slow_link.py" /mnt/
  printf '%s\n' '127.0.0.1 localhost' "$net.1 h0" "$net.2 h1" "$net.3 h2" "$net.4 h3" >/mnt/names
  mount --bind /mnt/names /etc/hosts
  cat >/mnt/agent <<'AGENT'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
exec nsenter --net --uts --ipc --mount --pid --target "$(cat "/mnt/$host")" env -i PATH="$PATH" HOME=/tmp USER=root \
  HORUS_PROFILE=default HORUS_RANKS=all HORUS_THREADS=1 bash -c "cd /tmp; $*"
AGENT
  chmod +x /mnt/agent
}

# A host's name and its own files.
own() {
  echo "$1" >/proc/sys/kernel/hostname
  mount -t tmpfs none /tmp
  mount -t tmpfs none /dev/shm
  mount -o remount,bind,ro /
  ip link set lo up
}
export -f own

set_up() {
  share
  own h0
  ip link add eth0 type bridge
  ip address add $net.1/24 dev eth0
  ip link set eth0 up
  local n init tries end
  if [ -n "$link" ]; then
    # Few large frames, which the link's program can keep up with.
    ip link add far type bridge
    ip link set far up
    for end in near away; do ip tuntap add dev $end mode tap; ip link set $end mtu 65000 up; done
    ip link set near master eth0
    ip link set away master far
    # The folder of this script may be below /tmp, which is another one by now.
    (cd / && exec python3 /mnt/slow_link.py near away "${link%,*}" "${link#*,}") >/mnt/link &
    for ((tries = 0; tries < 100; tries++)); do [ -s /mnt/link ] && break || sleep 0.1; done
    [ -s /mnt/link ] || { echo "the link does not start"; return 1; }
  fi
  for ((n = 1; n < count; n++)); do
    # Its first process is a shell, which reaps the processes of jobs.
    # shellcheck disable=SC2016
    unshare --net --uts --ipc --mount --pid --fork --mount-proc --kill-child=KILL bash -euc '
      own "$0"; mount -o remount,bind,ro /mnt; touch /tmp/ready; sleep infinity; :' h$n &
    for ((tries = 0; ; tries++)); do
      [ $tries -lt 100 ] || { echo "h$n does not start"; return 1; }
      init=$(cat "/proc/$!/task/$!/children" 2>/dev/null || true)
      init=${init// /}
      # Before its own files are mounted it sees those of h0.
      [ -n "$init" ] && [ -e "/proc/$init/root/tmp/ready" ] && [ ! "/proc/$init/root/tmp" -ef /tmp ] && break
      sleep 0.05
    done
    echo "$init" >/mnt/h$n
    ip link add h$n type veth peer name eth0 netns "$init"
    if [ -n "$link" ]; then ip link set h$n mtu 65000; nsenter --net --target "$init" ip link set eth0 mtu 65000; fi
    if [ -n "$link" ] && [ $n -ge 2 ]; then ip link set h$n master far up; else ip link set h$n master eth0 up; fi
    nsenter --net --target "$init" ip address add $net.$((n + 1))/24 dev eth0
    nsenter --net --target "$init" ip link set eth0 up
  done
}
exec 3>&1
trap 'untested "a host cannot be set up: $(tail -n 1 /mnt/log)" >&3' ERR
set -E
mount -t tmpfs none /mnt
set_up >/mnt/log 2>&1
set +E
trap - ERR
cd /tmp

# Five ranks, two of them on h0.
hosts=h0:2,h1:2,h2:1 ranks=5 limit=30
open_mpi=$(mpirun --version | grep -c 'Open MPI' || true)
# `hosted WORDS`: a job; `hosted NAME=VALUE WORDS` passes a variable on to all ranks, which MPI does for its own only.
hosted() {
  local words
  if [ "$open_mpi" = 1 ]; then
    words=(--allow-run-as-root --host "$hosts" --mca plm_rsh_agent /mnt/agent --mca plm_rsh_no_tree_spawn 1
      --mca oob_tcp_if_include "$net.0/24" --mca btl_tcp_if_include "$net.0/24" --mca rmaps_base_oversubscribe 1
      --mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3)
    # Hosts would bind their first rank to the same core.
    if [ -n "$link" ]; then words+=(--bind-to none); fi
    if [[ $1 == *=* ]]; then words+=(-x "$1"); shift; fi
  else # MPICH
    words=(-launcher ssh -launcher-exec /mnt/agent -iface eth0 -hosts "$hosts")
    if [[ $1 == *=* ]]; then words+=(-genv "${1%%=*}" "${1#*=}"); shift; fi
  fi
  timeout -k 5 "$limit" mpirun "${words[@]}" -n "$ranks" "$@"
}
if [ -n "$link" ]; then
  hosts=$1 limit=600
  ranks=$(tr ',' '\n' <<<"$hosts" | wc -l)
  shift
  hosted "$@"
  exit
fi
said=$(hosted uname -n 2>&1) || untested "a job fails: $(grep -m 1 '[a-z]' <<<"$said")"
[ "$(grep '^h[0-9]$' <<<"$said" | sort | tr '\n' ' ')" = "h0 h0 h1 h1 h2 " ] || untested "ranks are on other hosts: ${said//$'\n'/ }"

job() { said=$(hosted "$@" 2>&1) || fail "$*: $said"; }
# A job that must end with one line about its error: `error ABOUT WORDS`.
error() {
  local about=$1 status=0
  shift
  said=$(hosted "$@" 2>&1) || status=$?
  [ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || fail "$*: status $status (124, 137: does not end): $said"
  [ "$(grep -c '^error: ' <<<"$said")" = 1 ] || fail "$*: not one error: $said"
  grep -q "^error: .*$about" <<<"$said" || fail "$*: not about '$about': $said"
}
same() { cmp "$1" "$2" || fail "$3: not the bytes of one process"; }
passed() { echo "several hosts: $*"; }

mkdir in out one dying
cp /mnt/assets/small.png in/
for turn in 30 60; do /mnt/bin/horus in/small.png in/$turn.png --quiet rotate $turn; done

for program in convrot conv2d convuv; do
  words=("/mnt/bin/$program" in/small.png)
  "${words[@]}" one/$program.npy --theta-step 45 --quiet
  job "${words[@]}" out/$program.npy --theta-step 45
  grep -q ' 5 ranks,' <<<"$said" || fail "$program: not 5 ranks: $said"
  same {one,out}/$program.npy $program
done
words=(/mnt/bin/jacobi --size 61 --steps 50 --quiet --out)
"${words[@]}" one/jacobi.npy
job "${words[@]}" out/jacobi.npy
same {one,out}/jacobi.npy jacobi
words=(/mnt/bin/horus - --quiet luminance gauss 2 sobel)
"${words[@]:0:2}" one/edges.png "${words[@]:2}" <in/small.png
job "${words[@]:0:2}" out/edges.png "${words[@]:2}" <in/small.png
same {one,out}/edges.png "a picture from a pipe"
passed "programs write the bytes of one process, from files of h0 to files of h0"

words=(/mnt/bin/convrot in --theta-step 90 --out-dir)
"${words[@]}" one/series --quiet
job "${words[@]}" out/series --quiet
for file in one/series/*; do same "$file" "out/${file#one/}" "a series"; done
# Copies of the same folders on each host, which look alike down to their files' numbers, are not shared.
mkdir -p staged/{in,out}
cp in/*.png staged/in/
tar cf staged.tar -C staged .
for host in h0 h1 h2; do
  words=("mkdir -p /tmp/copy && mount -t tmpfs none /tmp/copy && tar xf - -C /tmp/copy")
  if [ $host = h0 ]; then bash -c "${words[0]}"; else /mnt/agent $host "${words[0]}"; fi <staged.tar
done
job /mnt/bin/convrot copy/in --theta-step 90 --out-dir copy/out --quiet
for file in one/series/*; do same "$file" "copy/out/${file##*/}" "a series from copies"; done
[ "$(ls -A copy/out)" = "$(ls -A one/series)" ] || fail "a series leaves $(ls -A copy/out)"
for n in 1 2; do /mnt/agent h$n 'umount /tmp/copy'; done
passed "so does a series of pictures"

words=(/mnt/bin/convrot in/small.png out/weighted.npy --theta-step 45 -v)
for weights in node:2,1,1 'node:2(1,3),1,0' measure; do
  job HORUS_WEIGHTS="$weights" "${words[@]}"
  same one/convrot.npy out/weighted.npy "HORUS_WEIGHTS=$weights"
done
for place in "0 of 5, 0 of 2 on node 0" "1 of 5, 1 of 2 on node 0" "2 of 5, 0 of 2 on node 1" "3 of 5, 1 of 2 on node 1" \
  "4 of 5, 0 of 1 on node 2"; do
  grep -q "rank $place" <<<"$said" || fail "no rank $place: $said"
done
error '2 weights for 3 nodes' HORUS_WEIGHTS=node:2,1 "${words[@]}"
passed "ranks know their hosts, and divide rows by weights of hosts"

error 'cannot read missing.png' /mnt/bin/convrot missing.png out/missing.png
# MPICH passes all variables on.
if [ "$open_mpi" = 1 ]; then HORUS_WEIGHTS=node:2,1,1 error . /mnt/bin/convrot in/small.png out/missing.png; fi
[ ! -e out/missing.png ] || fail "a job that failed wrote a file"
for n in 1 2; do
  left=$(/mnt/agent h$n "find /tmp -type f ! -name ready")
  [ -z "$left" ] || fail "files on h$n: $left"
done
passed "an error is told once, and other hosts keep no files"

# Only messages between hosts have their cost: fewer hosts, lower cost.
forecast() {
  /mnt/bin/convrot in/small.png x.png --theta-step 45 --dry-run-ranks 4 --ranks-per-host "$1" --latency 10000 |
    sed -n 's/^predicted \([0-9]*\).*/\1/p'
}
apart=$(forecast 1) pairs=$(forecast 2) together=$(forecast 4)
[ "$together" -lt 20 ] && [ $((together + 20)) -lt "$pairs" ] && [ "$pairs" -lt "$apart" ] ||
  fail "forecasts of 4 ranks on 4, 2 and 1 hosts: $apart, $pairs and $together ms"
passed "forecasts tell ranks of one host from ranks of several"

# A host that dies in the middle of a job: the job ends, on every host, and no file is left.
dies() {
  local host=$1 begun job tries
  hosted /mnt/bin/jacobi --size 200 --steps 1000000000 --out dying/u.npy >log 2>&1 &
  job=$!
  for ((tries = 0; ; tries++)); do
    [ $tries -lt 100 ] || fail "jacobi does not start on $host: $(cat log)"
    /mnt/agent "$host" 'grep -qsx jacobi /proc/[0-9]*/comm' && break
    sleep 0.1
  done
  sleep 1
  kill -0 $job || fail "jacobi ends before $host dies: $(cat log)"
  begun=$SECONDS
  if [ "$2" = silently ]; then ip link set "$host" down; fi
  kill -KILL "$(cat "/mnt/$host")"
  ! wait $job || fail "$host dies, and the job succeeds"
  [ $((SECONDS - begun)) -lt 25 ] || fail "$host dies, and the job goes on: $(cat log)"
  for ((tries = 0; ; tries++)); do
    grep -qsx jacobi /proc/[0-9]*/comm || break # h0 sees the processes of all hosts
    [ $tries -lt 50 ] || fail "$host dies, and ranks of other hosts go on"
    sleep 0.1
  done
  [ -z "$(ls -A dying)" ] || fail "$host dies, and leaves $(ls dying)"
  passed "$host dies $2, and its job ends within $((SECONDS - begun + 1)) s"
}
dies h2 openly
hosts=h0:3,h1:2
# The others notice only by polling, which MPICH does not do.
if [ "$open_mpi" = 1 ]; then dies h1 silently; fi
passed "all checks passed in $SECONDS s"
