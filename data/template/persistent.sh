# /etc/sandbox-persistent.sh: read by every bash in this sandbox, also by scripts and by
# commands that are run from outside. Add what should last, such as: export NAME=value
