# Completes `upulse` in bash. Write into ~/.bashrc: eval "$(upulse completion bash)"

_upulse() {
    local line="${COMP_LINE:0:COMP_POINT}" word head breaks
    mapfile -t COMPREPLY < <("$1" completion bash "$line" 2>/dev/null)
    # Bash begins a new word at a colon or an equals sign: what is before the last one stands there already.
    word="${line##*[[:space:]]}"
    breaks="${COMP_WORDBREAKS//[^:=]/}"
    if [[ $breaks && $word != [\"\']* ]]; then
        head="${word%"${word##*[$breaks]}"}"
        COMPREPLY=("${COMPREPLY[@]#"$head"}")
    fi
}

complete -o default -F _upulse upulse
