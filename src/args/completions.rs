//! The command line of `slicegate completions`.

use clap_complete::Shell;

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(slicegate completions bash)
      for this session
  slicegate completions bash > /etc/bash_completion.d/slicegate
  slicegate completions zsh > \"${fpath[1]}/_slicegate\"
  slicegate completions fish > ~/.config/fish/completions/slicegate.fish
      for every session

Exit codes:
  0  they were printed
  1  they could not be written
  2  the command line is wrong")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}
