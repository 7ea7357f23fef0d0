# bash completion for bac, printed from its option tables. Now: source <(bac completion bash)
# For good: bac completion bash >~/.local/share/bash-completion/completions/bac
# shellcheck shell=bash
# shellcheck disable=SC2207,SC2086  # words are split on purpose; names of sandboxes have no spaces

_bac_kind() { # KIND CURRENT
	local IFS=$'\n'
	case $1 in
	s) COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ls -q 2>/dev/null)" -- "$2")) ;;
	c)
		compopt -o nospace -o filenames 2>/dev/null
		COMPREPLY=($(compgen -S : -W "$("${COMP_WORDS[0]}" ls -q 2>/dev/null)" -- "$2")
			$(compgen -f -- "$2"))
		;;
	f) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$2")) ;;
	*'|'*) COMPREPLY=($(compgen -W "${1//|/$'\n'}" -- "$2")) ;;
	esac
}

_bac() {
	local cur=${COMP_WORDS[COMP_CWORD]} path='' word due='' rest='' list=''
	local subs flags valued args first i n=0
	COMPREPLY=()
	[[ $cur != = ]] || cur=''
	_bac_table ''
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]} due=''
		if [[ -z $rest && $word == -- ]]; then
			rest=1
		elif [[ -z $rest && $word == -?* ]]; then
			[[ " $valued" == *" $word:"* ]] || continue
			due=" $valued" due=${due#*" $word:"} due=${due%% *}
			[[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))
			((i++))
			((i >= COMP_CWORD)) || due=''
		elif [[ $word == : ]]; then # the shell parts SANDBOX:PATH
			((++i < COMP_CWORD)) || return 0
		elif [[ -n $subs ]]; then
			path=${path:+$path }$word
			_bac_table "$path"
		else
			((n += 1))
			rest=$rest$first
		fi
	done
	if [[ -n $due ]]; then
		_bac_kind "$due" "$cur"
	elif [[ -z $rest && $cur == -* ]]; then
		for word in $flags $valued --help; do
			list+=" ${word%%:*}"
		done
		COMPREPLY=($(compgen -W "$list" -- "$cur"))
	elif [[ -n $subs ]]; then
		COMPREPLY=($(compgen -W "$subs" -- "$cur"))
	else
		for word in $args; do
			due=${word%'*'}
			[[ $word != *'*' ]] || break
			((n-- > 0)) || break
			due=''
		done
		_bac_kind "$due" "$cur"
	fi
}
complete -F _bac bac
