# shellcheck shell=bash
export BAC_SECRETS_STORE=file
