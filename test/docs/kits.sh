# shellcheck shell=bash
bac policy init deny-all
answer 'bac run *' 'exit\r'
