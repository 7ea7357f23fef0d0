#compdef bac
# zsh completion for bac, printed from its option tables. Now: source <(bac completion zsh)
# For good: bac completion zsh >"${fpath[1]}/_bac"
_bac_kind() {
	local -a names
	case $1 in
	(s|c)
		names=(${(f)"$(_call_program sandboxes $words[1] ls -q 2>/dev/null)"})
		if [[ $1 == s ]]; then compadd -a names; else compadd -S : -a names; _files; fi
		;;
	(f) _files ;;
	(*'|'*) compadd -- ${(s:|:)1} ;;
	esac
}

_bac() {
	local cur=$words[CURRENT] where='' word due='' rest='' args first
	local -a subs flags valued kinds
	local -A takes
	integer i n=1
	_bac_table ''
	for ((i = 2; i < CURRENT; i++)); do
		word=$words[i] due=''
		if [[ -z $rest && $word == -- ]]; then
			rest=1
		elif [[ -z $rest && $word == -?* ]]; then
			(( $+takes[$word] )) || continue
			due=$takes[$word]
			(( ++i >= CURRENT )) || due=''
		elif (( $#subs )); then
			where=${where:+$where }$word
			_bac_table $where
		else
			(( n++ ))
			rest=$rest$first
		fi
	done
	if [[ -n $due ]]; then
		_bac_kind $due
	elif [[ -z $rest && $cur == --*=* ]] && (( $+takes[${cur%%=*}] )); then
		compset -P '*='
		_bac_kind $takes[${cur%%=*}]
	elif [[ -z $rest && $cur == -* ]]; then
		flags+=($valued '--help:show what there is')
		_describe -o option flags
	elif (( $#subs )); then
		_describe command subs
	else
		kinds=(${=args})
		due=${kinds[n]}
		[[ -n $due || $kinds[-1] != *'*' ]] || due=$kinds[-1]
		_bac_kind ${due%'*'}
	fi
}
