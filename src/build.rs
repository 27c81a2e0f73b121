//! Tells the program at build time what it is built by and made of.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let mut tell = |name: &str, version: &str| writeln!(out, "cargo::rustc-env=SLICEGATE_{name}={version}");
    let compiler = Command::new(env::var("RUSTC")?).arg("--version").output()?.stdout;
    let compiler = String::from_utf8(compiler)?;
    tell("RUST", compiler.split_whitespace().nth(1).ok_or("rustc does not say its version")?)?;
    tell("KUBERNETES", &kubernetes()?)?;
    tell("REGORUS", &locked(&fs::read_to_string("Cargo.lock")?, "regorus")?)?;
    Ok(writeln!(out, "cargo::rerun-if-changed=Cargo.lock\ncargo::rerun-if-changed=src/build.rs")?)
}

/// What the API types say of themselves: the major and the minor version, each in a byte.
fn kubernetes() -> Result<String, Box<dyn Error>> {
    let said = env::vars().find(|(name, _)| name.starts_with("DEP_K8S_OPENAPI_") && name.ends_with("_VERSION"));
    let number: u32 = said.ok_or("k8s-openapi does not say its version")?.1.parse()?;
    let [_, major, minor, _] = number.to_be_bytes();
    Ok(format!("{major}.{minor}"))
}

/// The version of a package in the lock file.
fn locked(lock: &str, package: &str) -> Result<String, Box<dyn Error>> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\n")).ok_or("it is not in the lock file")?;
    let line = rest.lines().next().unwrap_or_default();
    let version = line.strip_prefix("version = \"").and_then(|line| line.strip_suffix('"'));
    Ok(version.ok_or("the lock file has no version")?.to_owned())
}
