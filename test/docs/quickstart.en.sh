# shellcheck shell=bash
# Agents are stand-ins, and somebody answers what the page asks.
public || return
deadline 300
export BAC_SECRETS_STORE=file
answer 'bac secret set anthropic*' 'sk-ant-api03-not-a-real-key-0123456789\r'
answer 'bac run claude*' 'exit\r'
answer 'bac exec -it lab bash*' 'exit\r'
answer 'bac rm lab *' 'y\r'
