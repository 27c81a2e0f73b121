//! `slicegate version`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::args::{Version, VersionOutput};
use crate::version::VERSION;

/// Prints the versions.
pub(super) fn run(options: &Version) -> anyhow::Result<ExitCode> {
    let text = match options.output {
        VersionOutput::Json => format!("{}\n", serde_json::to_string(&VERSION)?),
        VersionOutput::Text => format!(
            "{} {} (revision {})\nrust {}\nkubernetes {}\n{}\n{}\nregorus {}\n",
            VERSION.name,
            VERSION.version,
            VERSION.revision,
            VERSION.rust,
            VERSION.kubernetes,
            VERSION.admission,
            VERSION.configuration,
            VERSION.regorus
        ),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
