#compdef upulse
# Completes `upulse` in zsh. Write into ~/.zshrc, after compinit: eval "$(upulse completion zsh)"

_upulse() {
    local -a found
    local line="${(j: :)words[1,CURRENT-1]} ${PREFIX}"
    found=("${(@f)$(_UPULSE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS="$line" "${words[1]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then
        found=("${(@)found//\\/\\\\}")
        found=("${(@)found//:/\\:}")
        found=("${(@)found/$'\t'/:}")
        _describe -V upulse found
    else
        _files
    fi
}

if [[ "${zsh_eval_context[-1]}" == loadautofunc ]]; then
    _upulse "$@"
else
    compdef _upulse upulse
fi
