//! What the real OPA says: of the starters, and of every pair that slicegate's own engine is held against.
//!
//! `UPDATE_GOLDEN=1` writes what it says into the files of the pairs, in the line behind each name.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use slicegate::json::{self, Json};

use crate::pairs::{self, Outcome, Pair};

#[test]
fn starters_pass_their_tests_in_opa() -> Result<()> {
    let opa = program()?;
    let starters = pairs::starters()?;
    assert!(!starters.is_empty());
    for folder in starters {
        for arguments in [["check", "--strict"].as_slice(), &["test"]] {
            let output = Command::new(&opa).args(arguments).arg(&folder).output()?;
            assert!(output.status.success(), "{}: {arguments:?}: {}", folder.display(), shown(&output));
        }
    }
    Ok(())
}

#[test]
fn pairs_are_as_opa_says() -> Result<()> {
    let opa = program()?;
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = String::new();
    for file in pairs::files()? {
        let pairs = pairs::pairs(&file).with_context(|| file.display().to_string())?;
        let said = pairs.iter().map(|pair| ask(&opa, pair)).collect::<Result<Vec<_>>>()?;
        if update {
            record(&file, &said)?;
            continue;
        }
        for (pair, said) in pairs.iter().zip(said).filter(|(pair, said)| pair.outcome.as_ref() != Some(said)) {
            writeln!(wrong, "{}: {}: {:?}, and OPA says {said:?}", file.display(), pair.name, pair.outcome)?;
        }
    }
    assert!(wrong.is_empty(), "{wrong}UPDATE_GOLDEN=1 writes what OPA says");
    Ok(())
}

/// The program, built where it is missing.
fn program() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/opa/build.sh");
    let output = Command::new(&script).output().with_context(|| script.display().to_string())?;
    ensure!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(text.lines().last().context("it names no program")?))
}

fn ask(opa: &Path, pair: &Pair) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(opa);
    command.current_dir(&folder).args(["eval", "--format=json", "--strict-builtin-errors", &pair.query]);
    if pair.v0 {
        command.arg("--v0-compatible");
    }
    for (name, text) in &pair.modules {
        fs::write(folder.path().join(name), text)?;
        command.args(["--data", name]);
    }
    if pair.data.as_object().is_some_and(|data| !data.is_empty()) {
        fs::write(folder.path().join("data.json"), pair.data.to_string())?;
        command.args(["--data", "data.json"]);
    }
    if let Some(input) = &pair.input {
        fs::write(folder.path().join("input.json"), input)?;
        command.args(["--input", "input.json"]);
    }
    let output = command.output()?;
    read(&output.stdout).with_context(|| format!("{}: {}", pair.name, shown(&output)))
}

fn read(answer: &[u8]) -> Result<Outcome> {
    let answer = json::parse(answer)?;
    if let Some(error) = answer.list("errors").first() {
        return Ok(Outcome::Error(error.text("code").context("an error without a code")?.to_owned()));
    }
    let Some(result) = answer.list("result").first() else { return Ok(Outcome::Undefined) };
    let value = result.list("expressions").first().and_then(|expression| expression.get("value"));
    let mut text = String::new();
    write_json(&mut text, value.context("an answer without a value")?)?;
    Ok(Outcome::Value(text))
}

/// The value as text without blanks, every number as it was.
fn write_json(out: &mut String, value: &Json<'_>) -> Result<()> {
    match value {
        Json::Number(literal) => out.push_str(literal),
        Json::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                out.push(if place == 0 { '[' } else { ',' });
                write_json(out, element)?;
            }
            out.push_str(if elements.is_empty() { "[]" } else { "]" });
        }
        Json::Object(members) => {
            for (place, (key, member)) in members.iter().enumerate() {
                write!(out, "{}{}:", if place == 0 { '{' } else { ',' }, Value::from(key))?;
                write_json(out, member)?;
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        scalar => write!(out, "{}", scalar.to_value())?,
    }
    Ok(())
}

/// Writes what was said behind the names of the pairs, and leaves every other line as it is.
fn record(file: &Path, said: &[Outcome]) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let (head, pairs) = text.split_once("\npairs:\n").context("no line `pairs:`")?;
    let mut said = said.iter();
    let mut out = format!("{head}\npairs:\n");
    for line in pairs.lines() {
        if ["  want: ", "  undefined: ", "  error: "].iter().any(|outcome| line.starts_with(outcome)) {
            continue;
        }
        writeln!(out, "{line}")?;
        if line.starts_with("- name: ") {
            match said.next().context("more names than pairs")? {
                Outcome::Value(text) => writeln!(out, "  want: '{}'", text.replace('\'', "''"))?,
                Outcome::Undefined => writeln!(out, "  undefined: true")?,
                Outcome::Error(code) => writeln!(out, "  error: {code}")?,
            }
        }
    }
    if said.next().is_some() {
        bail!("{}: a pair does not begin with a line `- name: `", file.display());
    }
    Ok(fs::write(file, out)?)
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
