# shellcheck shell=bash
bac policy init deny-all
mkdir -p ~/src/lib ~/data
answer 'bac run shell*' 'exit\r'
