# shellcheck shell=bash
public
mkdir -p ~/src/lab ~/src/other ~/data
echo notes >notes.txt
answer 'bac run *' 'exit\r'
answer 'bac exec -it *' 'exit\r'
answer 'bac secret set *' 'key-of-the-test-0123456789\r'
answer 'bac rm *' 'y\r'
