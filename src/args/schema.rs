//! The command line of `slicegate schema`.

/// Print the JSON Schema of the configuration
///
/// It is JSON Schema 2020-12, with a description of each field. Editors complete and check a configuration by it. It takes
/// whatever the server takes; mistakes that it cannot see, such as two pools that claim one resource, are told by the server and
/// by the guard.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate schema > slicegate.schema.json
      and, as the first line of config.yaml, for editors with the YAML language server:
      # yaml-language-server: $schema=slicegate.schema.json

Exit codes:
  0  it was printed
  1  it could not be written
  2  the command line is wrong")]
pub struct Schema {}
