#!/usr/bin/env bash
# Runs one job array unsharded and on two workers, of which one is killed in the middle, and compares the results byte
# by byte: by itself, with GNU parallel, and with Ray, which have to be installed (docs/scale.md).
# check.sh [SPELTER] ENGINE…, ENGINE: plain, parallel, ray. SPELTER_PYTHON is a Python with Ray.
set -euo pipefail
cd "$(dirname "$0")/../../.."
spelter="$(realpath "${1:-target/release/spelter}")"
engines=("${@:2}")
[ ${#engines[@]} -gt 0 ] || engines=(plain parallel ray)
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
shards=4
jobs=(litmus --generate --events 4 --count "${SPELTER_JOBS:-20000}")
export spelter

"$spelter" "${jobs[@]}" --results "$work/whole.jsonl"

# Starts the first shard, and kills it when it has some results.
kill_one() { # kill_one FOLDER
    "$spelter" "${jobs[@]}" --shard "1/$shards" --results "$1/1.jsonl" >/dev/null &
    local victim=$!
    until [ -e "$1/1.jsonl" ] && [ "$(wc -l <"$1/1.jsonl")" -gt 5 ]; do
        kill -0 "$victim" 2>/dev/null || break # it was done already
        sleep 0.01
    done
    kill -KILL "$victim" 2>/dev/null && echo "killed after $(wc -l <"$1/1.jsonl") lines"
    wait "$victim" 2>/dev/null || true
}

compare() { # compare ENGINE
    "$spelter" merge "$work/$1"/*.jsonl --out "$work/$1.merged"
    cmp "$work/whole.jsonl" "$work/$1.merged"
    echo "$1: equal to the unsharded results"
}

for engine in "${engines[@]}"; do
    folder="$work/$engine"
    mkdir "$folder"
    case "$engine" in
    plain)
        kill_one "$folder"
        # What is missing is said, with status 1.
        if "$spelter" merge "$folder/1.jsonl" >/dev/null 2>"$work/missing"; then echo "nothing is missing?"; exit 1; fi
        cat "$work/missing"
        for shard in $(seq "$shards"); do
            "$spelter" "${jobs[@]}" --shard "$shard/$shards" --results "$folder/$shard.jsonl" >/dev/null
        done
        ;;
    parallel)
        command -v parallel >/dev/null || { echo "parallel is not installed: apt-get install parallel"; exit 1; }
        # Each shard is killed in its first attempt; the second one continues.
        export shards
        attempt="$folder/attempt.sh"
        cat >"$attempt" <<'TRY'
#!/usr/bin/env bash
# attempt.sh SHARD FOLDER OPTION…: kills its own process the first time.
shard="$1" folder="$2"; shift 2
"$spelter" "$@" --shard "$shard/$shards" --results "$folder/$shard.jsonl" >/dev/null &
worker=$!
if mkdir "$folder/first-$shard" 2>/dev/null && [ "$shard" = 2 ]; then
    until [ -e "$folder/$shard.jsonl" ] && [ "$(wc -l <"$folder/$shard.jsonl")" -gt 5 ]; do sleep 0.01; done
    kill -KILL "$worker" && echo "killed shard $shard after $(wc -l <"$folder/$shard.jsonl") lines"
fi
wait "$worker"
TRY
        chmod +x "$attempt"
        seq "$shards" | parallel --jobs 2 --retries 3 "$attempt" {} "$folder" "${jobs[@]}"
        ;;
    ray)
        "${SPELTER_PYTHON:-python3}" runtime/jobs/engines/ray_jobs.py "$spelter" "$folder" "$shards" "${jobs[@]}"
        ;;
    *) echo "unknown engine $engine"; exit 2 ;;
    esac
    compare "$engine"
done
