#compdef upulse
# Completes `upulse` in zsh. Write into ~/.zshrc, after compinit: eval "$(upulse completion zsh)"

_upulse() {
    local -a found
    found=("${(@f)$("${words[1]}" completion zsh "${(j: :)words[1,CURRENT-1]} ${PREFIX}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then
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
