# fish completion for bac, printed from its option tables. Now: bac completion fish | source
# For good: bac completion fish >~/.config/fish/completions/bac.fish

# __bac_at COMMAND [COUNT[+]]: COMMAND has been typed, and COUNT other words (or more) after it
function __bac_at
    set -l words (commandline -opc)[2..]
    for part in (string split -n ' ' -- $argv[1])
        while string match -q -- '-*' $words[1]
            set -e words[1]
        end
        test "$words[1]" = $part; or return 1
        set -e words[1]
    end
    set -q argv[2]; or return 0
    set -l valued (__bac_valued $argv[1])
    set -l count 0
    while set -q words[1]
        if contains -- $words[1] $valued
            set -e words[1]
        else if not string match -q -- '-*' $words[1]
            set count (math $count + 1)
        end
        set -e words[1]
    end
    string match -q -- '*+' $argv[2]; and test $count -ge (string trim -r -c + $argv[2])
    or test $count = $argv[2]
end

function __bac_sandboxes
    bac ls -q 2>/dev/null
end

function __bac_sides
    __bac_sandboxes | string replace -r '$' ':'
end

complete -c bac -f
