# shellcheck shell=bash
# shellcheck disable=SC2154  # lib: the walker's
. "$lib/page-agent.sh" copilot
