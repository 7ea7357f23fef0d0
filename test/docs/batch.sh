# shellcheck shell=bash
bac policy init balanced
public || return
git init -q -b main ~/project
echo one >~/project/a
git -C ~/project add -A && git -C ~/project commit -q -m first
echo 'mend it' >task.md
mkdir my-kit
cat >my-kit/spec.yaml <<'YAML'
schemaVersion: "2"
kind: sandbox
name: my-kit
sandbox:
  image: default
  entrypoint: [sh, -c, 'echo "$*" >>a; echo done', my-agent]
YAML
