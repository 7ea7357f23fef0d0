# the questions of the page
export BAC_SECRETS_STORE=file
answer 'bac secret set anthropic*' 'sk-ant-api03-not-a-real-key-0123456789\r'
answer 'bac exec -it lab bash*' '\$ $' 'exit\r'
answer 'bac rm lab*' 'y\r'
