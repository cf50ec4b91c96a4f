# Completion of 'git vws' and 'git-vws' for fish. Fish's completion of git asks for that of
# 'git-vws' when the command is 'vws'.

function __git_vws_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (git vws __complete -- $words[2..-1] 2>/dev/null)
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
