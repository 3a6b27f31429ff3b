# Completes `upulse` in fish. Write into ~/.config/fish/config.fish: upulse completion fish | source

function __upulse_candidates
    set -l typed (commandline --current-process --tokenize --cut-at-cursor)
    set -lx _TYPER_COMPLETE_ARGS (commandline --current-process --cut-at-cursor | string collect)
    set -lx _TYPER_COMPLETE_FISH_ACTION get-args
    set -lx _UPULSE_COMPLETE complete_fish
    set -l found ($typed[1] 2>/dev/null | string match --regex '.+')
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end

complete --command upulse --no-files --keep-order --arguments '(__upulse_candidates)'
