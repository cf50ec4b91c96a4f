# Completion of 'git vws' and 'git-vws' for fish. It belongs in a vendor_conf.d folder: what lies in
# vendor_completions.d is read for 'git-vws' only, and fish's completion of git knows nothing of 'vws'.

function __git_vws_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l git git
    # What stands before 'vws' are options of git itself: they say which repository is meant.
    if test "$words[1]" = git
        set -l at (contains -i -- vws $words)
        or return
        set git $words[1..(math $at - 1)]
        set words $words[$at..-1]
    end
    for line in ($git vws __complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (string replace -r '^--[^=]*=' '' -- (commandline -ct))
            case ':command'
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end

complete -c git-vws -f -a '(__git_vws_complete)'
complete -c git -f -n '__fish_git_using_command vws' -a '(__git_vws_complete)'
