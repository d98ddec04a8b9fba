function __weigh_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l candidates (command weigh __complete -- $words[2..] "$current" 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\n' $candidates
    else
        __fish_complete_path "$current"
    end
end

complete --command weigh --no-files --keep-order --arguments '(__weigh_complete)'
