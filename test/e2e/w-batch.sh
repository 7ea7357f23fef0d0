#!/bin/bash
# One task in many sandboxes: what each run leaves, what is refused, and that a batch which was cut off goes on.
# timeout: 1800
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
runs=${BATCH_RUNS:-6}
deadline=1500

git init -q -b main repo
echo one >repo/a
git -C repo add a
git -C repo -c user.name=t -c user.email=t@t commit -q -m first
echo two >>repo/a # is not committed
cat >task <<'TASK'
echo "$NAME" >new; rm a; seq 3 >b
git config core.fsmonitor 'touch /tmp/never' 2>/dev/null
mkdir -p sub && git -C sub init -q && echo x >sub/x
curl -sS http://refused.test/ | head -n 1
echo "{\"type\":\"result\",\"usage\":{\"input_tokens\":1}}"
TASK
words=(--kit shell --memory 256m --cpus 1 --prompt task -e NAME=worker --out out repo -- bash -c '{prompt}')

# ---- what is refused
fails 'no number' bac batch --kit shell --prompt task
like 'one line' "$err" '^[^'$'\n'']*say how many runs: -n N'
fails 'no kit' bac batch -n 1 --prompt task
fails 'no task' bac batch -n 1 --kit shell
fails 'too many' bac batch -n 100000 --kit shell --prompt task
head -c 200000 /dev/zero | tr '\0' x >large
fails 'a task that is too long' bac batch -n 1 --kit shell --prompt large -- bash
like 'says so' "$err" 'has more than 128 KiB'
fails 'a folder that is no repository' bac batch -n 1 --kit shell --prompt task --out other /nowhere -- true
like 'is named' "$err" 'cannot clone /nowhere'
fails 'a report of nothing' bac batch report /tmp
like 'says what it lacks' "$err" 'it has no batch.json'
ok 'the network policy is forgotten' bac policy reset --force
fails 'no network policy' bac batch -n 2 --kit shell --prompt task --out unchosen -- bash
is 'is told once' "$err" 'bac: the network policy has not been chosen; run: bac policy init balanced (or allow-all, deny-all)'
is 'and nothing was made' "$(ls -d unchosen 2>/dev/null)" ''
ok 'it is chosen' bac policy init deny-all
mkdir needy
cat >needy/spec.yaml <<'KIT'
schemaVersion: "2"
kind: mixin
name: needy
credentials:
  - service: acme
    required: true
    apiKey: {name: ACME_KEY, proxyManaged: true, inject: [{domain: api.acme.test, header: X-Key, format: "%s"}]}
KIT
needs="bac: kit:needy requires the secret 'acme'"
open="at api.acme.test, and nobody has approved that (add --approve acme=api.acme.test)"
export BAC_SECRETS_STORE=file
fails 'a kit that requires a secret: none is stored' bac batch -n 2 --kit shell --kit ./needy --prompt task --out needed -- bash
is 'is told once, as by bac run' "$err" "$needs, and there is none (bac secret set acme); ${needs#bac: } $open"
ok 'it is stored' sh -c 'echo key-0123456789abcdef | "$BAC" secret set acme'
fails 'but not approved' bac batch -n 2 --kit shell --kit ./needy --prompt task --out needed -- bash
is 'that alone is told' "$err" "$needs $open"
is 'nothing was made' "$(ls -d needed 2>/dev/null)" ''
fails 'a template that is none: it is approved, and only each run fails' bac batch -n 2 --kit shell --kit ./needy --approve acme=api.acme.test --template none --prompt task --out needed -- bash
like 'with its reason' "$err" '2 of 2 runs failed'
unset BAC_SECRETS_STORE

# ---- cut off in the middle
"$BAC" batch -n "$runs" -j 2 "${words[@]}" >first.out 2>first.err &
batch=$!
wait_for 900 test -e out/run-001/result.json
kill -INT $batch
wait $batch
is 'a batch that is interrupted ends with its status' $? 130
like 'and says how it goes on' "$(cat first.err)" 'call again with the same words to go on'
is 'no sandbox is left of it' "$(bac ls -q)" ''
finished=$(find out -name result.json | wc -l)
[ "$finished" -lt "$runs" ] && pass 'not all runs were done' || fail 'not all runs were done' "$finished"
stamp=$(stat -c %y out/run-001/result.json out/run-001/transcript.txt)
"$BAC" batch -n "$runs" -j 2 "${words[@]}" >second.out 2>second.err &
batch=$!
wait_for 900 test -e "out/run-$(printf %03d $((finished + 1)))/transcript.txt"
kill -KILL $batch
wait $batch 2>/dev/null

# ---- and brought to its end
fails 'another task in the same folder' bac batch -n "$runs" --kit shell --prompt repo/a --out out repo -- bash
like 'is refused, with a way out' "$err" "holds a batch with another '[a-z_]+'; choose another folder with --out"
ok 'a batch that was killed goes on' bac batch -n "$runs" -j 2 "${words[@]}"
like 'and ends with a table' "$out" "$(printf '%03d' "$runs")   ok  .*$runs of $runs ok"
is 'what was done is not done again' "$(stat -c %y out/run-001/result.json out/run-001/transcript.txt)" "$stamp"
like 'what is not committed is told' "$(cat first.err)" 'what is not committed in repo is not part of the runs'
is 'no sandbox is left' "$(bac ls -q)" ''
run bac batch report --json out
is 'the report has all runs' "$(json '[r["run"] for r in d["runs"]] == list(range(1, d["batch"]["n"] + 1))' <<<"$out")" true
is 'each with its status and exit' "$(json 'all(r["status"] == "ok" and r["exit"] == 0 for r in d["runs"])' <<<"$out")" true
is 'what changed' "$(json 'all(r["changes"] == {"files": 3, "added": 4, "removed": 1} for r in d["runs"])' <<<"$out")" true
is 'a repository that the agent made is left out, and named' "$(json 'all(r["left_out"] == ["sub"] for r in d["runs"])' <<<"$out")" true
is 'how long it took' "$(json 'all(0 < r["seconds"]["agent"] < r["seconds"]["total"] for r in d["runs"])' <<<"$out")" true
is 'what was refused' "$(json 'all(r["network"]["denied"] >= 1 and r["network"]["allowed"] == 0 for r in d["runs"])' <<<"$out")" true
is 'no tokens where the agent tells none' "$(json 'any(r["tokens"] for r in d["runs"])' <<<"$out")" false
is 'the same is in report.json' "$(json 'len(d["runs"])' <out/report.json)" "$runs"
is 'the files of a run' "$(cd out/run-001 && echo *)" 'changes.diff errors.txt log.txt network.json result.json transcript.txt work'
like 'its transcript' "$(cat out/run-001/transcript.txt)" 'refused by network policy: refused.test'
like 'its changes' "$(cat out/run-001/changes.diff)" 'diff --git a/a b/a'$'\n''deleted file.*new file.*\+worker'
like 'its network log' "$(cat out/run-001/network.json)" '"decision":"deny","host":"refused.test"'
is 'the work is there' "$(cat out/run-001/work/new)" worker
is 'the repository is as it was' "$(git -C repo status --porcelain)" ' M a'

# ---- files that are named from here
mkdir kit
printf '%s\n' 'schemaVersion: "2"' 'kind: sandbox' 'name: kit' 'sandbox: {image: default, entrypoint: [bash]}' >kit/spec.yaml
echo 'SAID=in a file' >variables
echo 'echo "$SAID"' >task1
ok 'a kit and a file of variables in this folder' bac batch -n 1 --kit ./kit --env-file ./variables --memory 256m --prompt task1 --out here -- -c '{prompt}'
like 'are found' "$out" '1 of 1 ok$'
is 'and used' "$(cat here/run-001/transcript.txt)" 'in a file'

# ---- a run that fails
echo 'echo gone wrong >&2; exit 7' >task2
status 'a batch whose run fails' 1 bac batch -n 1 --kit shell --memory 256m --prompt task2 --out failed -- bash -c '{prompt}'
like 'tells how' "$out" '001   failed     7 .* gone wrong'$'\n''0 of 1 ok$'
is 'says how many, and where the report is' "$(tail -n 1 <<<"$err")" 'bac: 1 of 1 runs failed; failed/report.json has it all, or: bac batch report failed'
ok 'a report of it is no failure' bac batch report failed
status 'called again it repeats nothing, and says it again' 1 bac batch -n 1 --kit shell --memory 256m --prompt task2 --out failed -- bash -c '{prompt}'
like 'as done already' "$err" '1 of 1 runs are done already'
echo 'sleep 1000' >task3
status 'a run that takes too long' 1 bac batch -n 1 --kit shell --memory 256m --prompt task3 --timeout 1s --out slow -- bash -c '{prompt}'
like 'is ended' "$out" '001   timeout '
is 'and its sandbox is gone' "$(bac ls -q)" ''
status 'a sandbox that cannot be made' 1 bac batch -n 1 --kit shell --memory 256m --template none --prompt task --out none -- bash
like 'is told with its reason' "$out" "001   failed     - .*none"
