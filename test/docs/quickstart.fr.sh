# shellcheck shell=bash disable=SC2154  # lib is the walker's
# The same as in English.
. "$lib/../docs/quickstart.en.sh"
