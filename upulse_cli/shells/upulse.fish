# Completes `upulse` in fish. Write into ~/.config/fish/config.fish: upulse completion fish | source

function __upulse_candidates
    set -l typed (commandline --current-process --tokenize --cut-at-cursor)
    set -l line (commandline --current-process --cut-at-cursor | string collect)
    set -l found ($typed[1] completion fish -- $line 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end

complete --command upulse --no-files --keep-order --arguments '(__upulse_candidates)'
