/**
 * The scripts that `hearth completion SHELL` prints. Each asks the program for candidates, and falls back to file
 * names. No candidate is evaluated, because names come from a server.
 */
export const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;
export type Shell = (typeof SHELLS)[number];

/** Bash splits words at colons by default, so the script strips the part before the last one from the answers. */
const BASH = `# hearth completion for bash: eval "$(hearth completion bash)" in ~/.bashrc
_hearth_complete() {
  local line=\${COMP_LINE:0:COMP_POINT} words typed=""
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] || typed=\${words[-1]}
  [[ -z $typed ]] && words+=("")
  mapfile -t COMPREPLY < <(hearth __complete -- "\${words[@]:1}" 2>/dev/null)
  if [[ $typed == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("\${COMPREPLY[@]#"\${typed%"\${typed##*:}"}"}")
  fi
}
complete -o default -F _hearth_complete hearth
`;

const ZSH = `#compdef hearth
# hearth completion for zsh: eval "$(hearth completion zsh)" in ~/.zshrc, behind compinit
_hearth() {
  local -a found
  found=("\${(@f)$(hearth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found[1] ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _hearth hearth
`;

const FISH = `# hearth completion for fish: hearth completion fish > ~/.config/fish/completions/hearth.fish
function __hearth_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    hearth __complete -- $words[2..-1] "$typed" 2>/dev/null
end
complete -c hearth -f -a '(__hearth_complete)'
complete -c hearth -n 'test -z "$(__hearth_complete)"' -F
`;

/** An empty word is sent as two quotes: older versions drop empty arguments. */
const POWERSHELL = `# hearth completion for PowerShell: hearth completion powershell | Out-String | Invoke-Expression, in $PROFILE
Register-ArgumentCompleter -Native -CommandName hearth -ScriptBlock {
    param($typed, $ast, $position)
    $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($typed -eq '') { $words += '""' }
    hearth __complete -- @words 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
`;

export const COMPLETION_SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
  powershell: POWERSHELL,
};
