# shellcheck shell=bash
bac policy init deny-all
