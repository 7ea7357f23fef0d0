#!/bin/bash
# What src/cli/test-print prints, given to the programs it is for. Argument: test-print. Prints TAP.
set -u
print=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rows=0

row() { # STATUS NAME
	rows=$((rows + 1))
	[ "$1" -eq 0 ] && printf 'ok %d - %s\n' "$rows" "$2" || printf 'not ok %d - %s\n' "$rows" "$2"
}

is() { # NAME GOT WANT
	[ "$2" = "$3" ]
	row $? "$1"
	[ "$2" = "$3" ] || printf '# got:    %s\n# wanted: %s\n' "${2//$'\n'/ }" "${3//$'\n'/ }"
}

without() { # PROGRAM NAME
	rows=$((rows + 1))
	printf 'ok %d - %s # SKIP %s is not installed\n' "$rows" "$2" "$1"
}

for what in bash zsh fish; do
	"$print" "$what" >"$dir/$what"
	row $? "prints $what"
done
"$print" manual >"$dir/bac.1"
row $? 'prints the manual'

# a bac that knows two sandboxes
mkdir "$dir/bin" "$dir/work"
printf '#!/bin/sh\n[ "$*" = "ls -q" ] && printf "box1\\nbox2\\n"\n' >"$dir/bin/bac"
chmod +x "$dir/bin/bac"
touch "$dir/work/boat"
mkdir "$dir/work/bay"
PATH=$dir/bin:$PATH
cd "$dir/work" || exit 1

# complete WORD...: what bash offers for the last word
complete_bash() {
	# shellcheck disable=SC2016
	bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
		_bac; printf "%s\n" "${COMPREPLY[@]}"' - "$dir/bash" "$@" | sort | xargs
}
bash -n "$dir/bash"
row $? 'bash reads its script'
is 'bash: commands' "$(complete_bash bac '')" 'completion cp exec stop template'
is 'bash: a command' "$(complete_bash bac ex)" 'exec'
is 'bash: sub commands' "$(complete_bash bac template '')" 'build rm'
is 'bash: options' "$(complete_bash bac exec --e)" '--env --env-file'
is 'bash: a sandbox' "$(complete_bash bac exec b)" 'box1 box2'
is 'bash: after options' "$(complete_bash bac exec -i -e A=b --env c=d '')" 'box1 box2'
is 'bash: only the first of exec' "$(complete_bash bac exec box1 b)" ''
is 'bash: no options behind it' "$(complete_bash bac exec box1 --e)" ''
is 'bash: every one of stop' "$(complete_bash bac stop box1 b)" 'box1 box2'
is 'bash: a file' "$(complete_bash bac exec --env-file b)" 'bay boat'
is 'bash: a choice' "$(complete_bash bac exec --accel '')" 'kvm tcg'
is 'bash: a choice after =' "$(complete_bash bac exec --accel = k)" 'kvm'
is 'bash: right after =' "$(complete_bash bac exec --accel =)" 'kvm tcg'
is 'bash: sides of a copy' "$(complete_bash bac cp bo)" 'boat box1: box2:'
is 'bash: the other side' "$(complete_bash bac cp box1 : /x boa)" 'boat'
is 'bash: a path in a sandbox is not guessed' "$(complete_bash bac cp box1 : /)" ''
is 'bash: choices as arguments' "$(complete_bash bac completion '')" 'bash fish zsh'

if type -p fish >/dev/null; then
	complete_fish() {
		HOME=$dir XDG_CONFIG_HOME=$dir fish --no-config -c "source $dir/fish; complete -C '$1'" |
			cut -f1 | sort | xargs
	}
	is 'fish: commands' "$(complete_fish 'bac ')" 'completion cp exec stop template'
	is 'fish: sub commands' "$(complete_fish 'bac template ')" 'build rm'
	is 'fish: a sandbox' "$(complete_fish 'bac exec b')" 'box1 box2'
	is 'fish: after options' "$(complete_fish 'bac exec -i -e A=b b')" 'box1 box2'
	is 'fish: only the first of exec' "$(complete_fish 'bac exec box1 b')" ''
	is 'fish: every one of stop' "$(complete_fish 'bac stop box1 b')" 'box1 box2'
	is 'fish: options' "$(complete_fish 'bac exec --e')" '--env --env-file'
	is 'fish: a choice' "$(complete_fish 'bac exec --accel ')" 'kvm tcg'
	is 'fish: sides of a copy' "$(complete_fish 'bac cp bo')" 'boat box1: box2:'
else
	without fish 'fish'
fi

if type -p zsh >/dev/null; then
	zsh -f -n "$dir/zsh"
	row $? 'zsh reads its script'
	# A real line editor in a pseudo terminal, asked to list what it would complete.
	cat >"$dir/ask" <<-'ZSH'
		zmodload zsh/zpty
		zpty z zsh -f -i
		zpty -w z "PS1= ; autoload -Uz compinit && compinit -u -d $1/dump; source $1/zsh"
		zpty -w z "zstyle ':completion:*' list-prompt ''; LISTMAX=10000; bindkey '^I' list-choices"
		zpty -w z "print READY''NOW"
		zpty -r -m z line '*READYNOW*'
		zpty -w -n z "$2"$'\t'
		zpty -w -n z $'\C-a\C-kprint ALL\'\'DONE\n'
		zpty -r -m z line '*ALLDONE*'
		print -r -- $line
	ZSH
	complete_zsh() {
		HOME=$dir timeout 20 zsh -f "$dir/ask" "$dir" "$1" 2>&1 | tr -d '\r' | grep -v 'print ALL'
	}
	[[ $(complete_zsh 'bac exec b') == *box1*box2* ]]
	row $? 'zsh: a sandbox'
	[[ $(complete_zsh 'bac template ') == *build*'make the default template'* ]]
	row $? 'zsh: sub commands'
	[[ $(complete_zsh 'bac exec --accel ') == *kvm*tcg* ]]
	row $? 'zsh: a choice'
	[[ $(complete_zsh 'bac exec --e') == *--env-file*'read variables'* ]]
	row $? 'zsh: options'
else
	without zsh 'zsh'
fi

if type -p mandoc >/dev/null; then
	said=$(mandoc -T lint -W warning "$dir/bac.1" 2>&1 | grep -v 'missing date')
	is 'mandoc finds no fault in the manual' "$said" ''
else
	without mandoc 'mandoc'
fi
if type -p groff >/dev/null; then
	page=$(groff -man -Tutf8 -ww "$dir/bac.1" 2>"$dir/said" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g')
	is 'nor does groff' "$(cat "$dir/said")" ''
	[[ $page == *'bac exec [OPTIONS] SANDBOX COMMAND [ARG...]'* && $page == *"-e, --env NAME=VALUE"* ]]
	row $? 'and it reads as it should'
else
	without groff 'groff'
fi
printf '1..%d\n' "$rows"
