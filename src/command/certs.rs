//! `slicegate certs`: the authority and the pair that a server needs, made and renewed.
//!
//! Invariant: nothing that is there is replaced unless the command line says so, and no private key is printed.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use jiff::{Timestamp, ToSpan as _};

use crate::args::Certs;
use crate::certificates::{self, Authority, CertificateError, Signed};
use crate::files::replace::{self, Access, File};

/// Where the files are.
struct Places {
    authority: PathBuf,
    authority_key: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// Makes what is asked for and says what it made.
pub(super) fn run(options: &Certs) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let places = Places::below(&options.out);
    let (authority, names) = if options.renew {
        let names =
            || fs::read_to_string(&places.certificate).map(|text| certificates::names(&text)).unwrap_or_default();
        (places.read()?, if options.names.is_empty() { names() } else { options.names.clone() })
    } else {
        if !options.force {
            places.are_free()?;
        }
        let made = Authority::make("slicegate authority", options.key_type, now, after(now, options.authority_days)?);
        (made.context("cannot make the authority")?, options.names.clone())
    };
    let names = if names.is_empty() { Certs::default_names() } else { names };
    let signed = authority.sign(&names, options.key_type, now, after(now, options.days)?);
    let signed = signed.map_err(|error| match error {
        CertificateError::Ended(end) => anyhow::anyhow!(
            "{}: the authority ended at {end}; make a new one with --force, and give API servers its caBundle",
            places.authority.display()
        ),
        other => anyhow::Error::new(other).context("cannot make the server's certificate"),
    })?;
    fs::create_dir_all(&options.out).with_context(|| format!("cannot make the folder {}", options.out.display()))?;
    let key = (!options.renew).then(|| authority.key());
    places.write(&authority, key.as_deref(), &signed)?;
    let text = told(&places, options.renew, &authority, &signed, &names)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

impl Places {
    fn below(folder: &Path) -> Self {
        let [authority, authority_key, certificate, key] =
            ["ca.pem", "ca-key.pem", "tls.pem", "tls-key.pem"].map(|name| folder.join(name));
        Self { authority, authority_key, certificate, key }
    }

    fn are_free(&self) -> anyhow::Result<()> {
        let all = [&self.authority, &self.authority_key, &self.certificate, &self.key];
        // A link to nowhere is something too.
        if let Some(there) = all.into_iter().find(|path| path.symlink_metadata().is_ok()) {
            bail!(
                "{} is there already, and nothing was made; use --renew for a new pair from the authority there, --out for \
                 another folder, or --force to replace everything",
                there.display()
            );
        }
        Ok(())
    }

    fn read(&self) -> anyhow::Result<Authority> {
        let text = |path: &Path| {
            let help = "a renewal needs the authority that is there; make one without --renew";
            fs::read_to_string(path).with_context(|| format!("cannot read {}; {help}", path.display()))
        };
        let certificates = text(&self.authority)?;
        let key = text(&self.authority_key)?;
        Authority::read(&certificates, &key).map_err(|error| {
            let at_fault = if matches!(error, CertificateError::NoKey) { &self.authority_key } else { &self.authority };
            let beside = match error {
                CertificateError::Mismatch => format!(" ({})", self.authority_key.display()),
                _ => String::new(),
            };
            anyhow::anyhow!("{}: {error}{beside}", at_fault.display())
        })
    }

    fn write(&self, authority: &Authority, authority_key: Option<&str>, signed: &Signed) -> anyhow::Result<()> {
        let file = |path, access, text| File { path, access, text };
        let mut files = vec![
            file(&self.key, Access::Owner, &signed.key),
            file(&self.certificate, Access::All, &signed.certificate),
        ];
        if let Some(key) = authority_key {
            files.push(file(&self.authority_key, Access::Owner, key));
            files.push(file(&self.authority, Access::All, &authority.certificate));
        }
        replace::write(&files)
            .map_err(|(path, error)| anyhow::Error::new(error).context(format!("cannot write {}", path.display())))
    }
}

fn after(now: Timestamp, days: i64) -> anyhow::Result<Timestamp> {
    // Days of the calendar are all of one length in UTC.
    Ok(now.checked_add(days.saturating_mul(24).hours())?)
}

/// What was made, and what comes next.
fn told(
    places: &Places,
    renewed: bool,
    authority: &Authority,
    signed: &Signed,
    names: &[String],
) -> anyhow::Result<String> {
    let [ca, ca_key, certificate, key] =
        [&places.authority, &places.authority_key, &places.certificate, &places.key].map(|path| quoted(path));
    let day = |end: Timestamp| end.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let mut text = String::new();
    if !renewed {
        writeln!(text, "{ca}: an authority, until {}", day(authority.end))?;
        writeln!(text, "{ca_key}: its private key, which only the next --renew needs")?;
    }
    writeln!(text, "{certificate}: for {}, until {}", names.join(", "), day(signed.end))?;
    if signed.end == authority.end {
        writeln!(text, "    it ends with its authority")?;
    }
    writeln!(text, "{key}: its private key")?;
    writeln!(
        text,
        "\nGive the server its pair; a running one serves it without a restart:\n\n  \
         kubectl -n slicegate-system create secret tls slicegate-tls --cert={certificate} --key={key} \\\n    \
         --dry-run=client -o yaml | kubectl apply -f -"
    )?;
    if renewed {
        writeln!(
            text,
            "\nThe authority is the one before, so the caBundle of the webhook configurations stays as it is."
        )?;
    } else {
        writeln!(
            text,
            "\nGive API servers its authority, once the server answers:\n\n  \
             for file in deploy/webhooks.yaml deploy/guard.yaml; do\n    \
             sed \"s/caBundle: \\\"\\\"/caBundle: $(base64 < {ca} | tr -d '\\n')/\" $file | kubectl apply -f -\n  done"
        )?;
    }
    Ok(text)
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+=@%,:".contains(character);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
