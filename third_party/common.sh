# Functions of the scripts in this folder, which read it: `source "$(dirname "${BASH_SOURCE[0]}")/common.sh"`.
#
# RANKINE_TEST_BAZEL="bazel --output_base=DIR" replaces third_party/bazel.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")

say() { printf 'third_party/%s: %s\n' "$(basename "$0")" "$*" >&2; }
refuse() { say "$*"; exit 2; }

bazel() {
  local command
  read -ra command <<<"${RANKINE_TEST_BAZEL:-$here/bazel}"
  (cd "$root" && command "${command[@]}" "$@" </dev/null)
}
# build [FLAG...] TARGET...: builds, and sets `built` to the folder of the results.
build() {
  bazel build --config=log "$@" || return 1
  built=$(bazel info bazel-bin 2>/dev/null)
}

# The version, and the time of the last commit, which equal packages of equal sources have.
version() { sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' "$root/engine/api/version.h"; }
epoch() { git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/engine/api/version.h"; }

# run_checks CHECK...: calls `check NAME` for each, in a subshell, and prints its lines "ok ..." or "note ...", or the last lines of a failed
# one. `needs NAME` prints the programs, files and Python modules (python3:NAME) without which a check is skipped. `prepare`, if there is
# such a function, is called before the first check that is not skipped. The last line sums up, "N passed, N failed, N skipped", as do the
# variables of these names.
run_checks() {
  local prepared='' name need missing closing log
  passed=0 failed=0 skipped=0
  log=$(mktemp)
  for name; do
    missing=()
    for need in $(needs "$name" | sort -u); do
      case $need in
        python3:*) /usr/bin/python3 -c "import ${need#python3:}" 2>/dev/null ;;
        *) [[ -e $need ]] || type -P "$need" >/dev/null ;;
      esac || missing+=("$need")
    done
    if ((${#missing[@]} > 0)); then
      echo "$name: skipped, there is no ${missing[*]}"
      ((skipped += 1))
      continue
    fi
    if [[ -z $prepared ]] && declare -F prepare >/dev/null && ! prepare >"$log" 2>&1; then
      tail -n 40 "$log"
      echo "preparation for $name and later checks: FAILED"
      ((failed += 1))
      break
    fi
    prepared=yes
    if (set -e -o pipefail; check "$name") >"$log" 2>&1; then
      grep -aE '^(ok|note)' "$log" || true
      echo "$name: passed"
      ((passed += 1))
    else
      tail -n 60 "$log"
      echo "$name: FAILED"
      ((failed += 1))
    fi
  done
  rm -f "$log"
  closing="$passed passed, $failed failed"
  ((skipped == 0)) || closing+=", $skipped skipped"
  echo "$closing"
  ((failed == 0))
}
