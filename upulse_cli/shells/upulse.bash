# Completes `upulse` in bash. Write into ~/.bashrc: eval "$(upulse completion bash)"

_upulse() {
    local line="${COMP_LINE:0:COMP_POINT}" word head breaks quotes found=() one
    mapfile -t found < <(_UPULSE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS="$line" "$1" 2>/dev/null)
    found=("${found[@]%%$'\t'*}")
    COMPREPLY=()
    word="${line##*[[:space:]]}"
    # Others choose names. Where a quote may be open only those are offered that no shell takes for more than text.
    quotes="${line//[!\"\'\`]/}"
    for one in "${found[@]}"; do
        [[ ! $one || $quotes && $one == *[![:alnum:]_./:=@%+,-]* ]] || COMPREPLY+=("$(printf %q "$one")")
    done
    # Bash begins a new word at a colon or an equals sign: what is before the last one stands there already.
    breaks="${COMP_WORDBREAKS//[^:=]/}"
    if [[ $breaks && $word != [\"\']* ]]; then
        head="${word%"${word##*[$breaks]}"}"
        COMPREPLY=("${COMPREPLY[@]#"$head"}")
    fi
}

complete -o default -F _upulse upulse
