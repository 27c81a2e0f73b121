//! stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    Deny,
    Violation,
    Warn,
    Patch,
    Main,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub package: String,
    pub rule: String,
    pub kind: RuleKind,
    pub file: String,
    pub line: u32,
    pub is_set: bool,
}
impl Entry {
    pub fn path(&self) -> String {
        format!("{}.{}", self.package, self.rule)
    }
}
pub fn entries(unit: &super::Unit<'_>) -> Vec<Entry> {
    use regorus::unstable::*;
    let mut all = Vec::new();
    for m in unit.modules {
        let file = m.package.span.source.file().clone();
        if unit.libraries.contains(&file) || unit.tests.contains(&file) {
            continue;
        }
        let package = format!("data.{}", m.package.refr.span().text());
        for r in &m.policy {
            if let Rule::Spec { head, span, .. } = r.as_ref() {
                let (refr, is_set) = match head {
                    RuleHead::Set { refr, .. } => (refr, true),
                    RuleHead::Compr { refr, .. } => (refr, false),
                    RuleHead::Func { .. } => continue,
                };
                let name = match refr.as_ref() {
                    Expr::RefBrack { refr, .. } => refr.span().text().to_owned(),
                    other => other.span().text().to_owned(),
                };
                let kind = match name.as_str() {
                    "deny" => RuleKind::Deny,
                    "violation" => RuleKind::Violation,
                    "warn" => RuleKind::Warn,
                    "patch" => RuleKind::Patch,
                    _ => continue,
                };
                let e =
                    Entry { package: package.clone(), rule: name, kind, file: file.clone(), line: span.line, is_set };
                if !all.iter().any(|x: &Entry| x.path() == e.path()) {
                    all.push(e)
                }
            }
        }
    }
    all
}
