//! The modules of a unit, indexed: packages, rules, functions, imports.

use std::collections::BTreeMap;
use std::ops::Bound;

use regorus::unstable::{Expr, Import, Module, Ref, Rule, RuleHead, Span};

use super::Unit;
use super::walk::{self, Facts, Step};

/// A path below `data`: `["data", "gpu", "admission", "deny"]`.
pub(super) type Path = Vec<String>;

/// Whose file a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Own,
    Library,
    Test,
}

/// One module.
pub(super) struct Part<'a> {
    pub(super) module: &'a Module,
    pub(super) package: Path,
    pub(super) origin: Origin,
}

/// One rule: a head with its bodies, or a default.
pub(super) struct Definition<'a> {
    pub(super) part: usize,
    pub(super) rule: &'a Rule,
    pub(super) refr: &'a Ref<Expr>,
    /// Where its value is; what is dynamic in it is cut off.
    pub(super) path: Path,
    /// The steps of its head after the name.
    pub(super) steps: Vec<Step>,
    pub(super) facts: Facts<'a>,
}

/// An import.
pub(super) struct Alias<'a> {
    pub(super) import: &'a Import,
    pub(super) path: Path,
}

/// All of a unit.
pub(super) struct Model<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) rules: Vec<Definition<'a>>,
    /// Rules by their paths.
    pub(super) by_path: BTreeMap<Path, Vec<usize>>,
    /// Functions and the number of their arguments.
    pub(super) functions: BTreeMap<Path, usize>,
    /// Imports by package and name. The engine keeps them per package, so the last one of a name wins there.
    pub(super) aliases: BTreeMap<(Path, String), Vec<Alias<'a>>>,
}

impl<'a> Model<'a> {
    pub(super) fn of(unit: &Unit<'a>) -> Self {
        let mut model = Self {
            parts: Vec::new(),
            rules: Vec::new(),
            by_path: BTreeMap::new(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
        };
        for module in unit.modules {
            model.add(unit, module);
        }
        for (index, rule) in model.rules.iter().enumerate() {
            model.by_path.entry(rule.path.clone()).or_default().push(index);
            if let Some(args) = arguments(rule.rule) {
                model.functions.entry(rule.path.clone()).or_insert(args.len());
            }
        }
        model
    }

    fn add(&mut self, unit: &Unit<'a>, module: &'a Module) {
        let file = module.package.span.source.file();
        let origin = match () {
            () if unit.libraries.contains(file) => Origin::Library,
            () if unit.tests.contains(file) => Origin::Test,
            () => Origin::Own,
        };
        let mut package = vec!["data".to_owned()];
        if let Some((root, steps)) = walk::path(&module.package.refr) {
            package.extend(walk::names(root, &steps));
        }
        let part = self.parts.len();
        for import in &module.imports {
            let Some((root, steps)) = walk::path(&import.refr) else { continue };
            if matches!(root, "future" | "rego") {
                continue;
            }
            let path = walk::names(root, &steps);
            let Some(alias) = import.r#as.as_ref().map(Span::text).or(path.last().map(String::as_str)) else {
                continue;
            };
            let key = (package.clone(), alias.to_owned());
            self.aliases.entry(key).or_default().push(Alias { import, path });
        }
        for rule in &module.policy {
            let refr = reference(rule);
            let Some((root, steps)) = walk::path(refr) else { continue };
            let mut path = package.clone();
            path.extend(walk::names(root, &steps));
            self.rules.push(Definition { part, rule, refr, path, steps, facts: walk::facts(rule) });
        }
        self.parts.push(Part { module, package, origin });
    }

    pub(super) fn origin(&self, rule: &Definition<'_>) -> Origin {
        self.parts.get(rule.part).map_or(Origin::Own, |part| part.origin)
    }

    pub(super) fn package(&self, part: usize) -> &[String] {
        self.parts.get(part).map_or(&[], |part| part.package.as_slice())
    }

    /// Whether a rule has this path or one below it.
    pub(super) fn rule_at_or_below(&self, path: &[String]) -> bool {
        below(&self.by_path, path).next().is_some()
    }

    /// Whether a rule has a path that this one leads into: a value of a rule is asked for a part.
    pub(super) fn rule_above(&self, path: &[String]) -> bool {
        (1..path.len()).any(|length| path.get(..length).is_some_and(|prefix| self.by_path.contains_key(prefix)))
    }

    /// Whether a module's package is this path or below it.
    pub(super) fn package_at_or_below(&self, path: &[String]) -> bool {
        self.parts.iter().any(|part| part.package.starts_with(path))
    }

    /// Where a name with steps leads to below `data`, seen from a module.
    pub(super) fn resolve(&self, part: usize, names: &[String]) -> Option<Path> {
        let (root, rest) = names.split_first()?;
        match root.as_str() {
            "data" => return Some(names.to_vec()),
            "input" => return None,
            _ => {}
        }
        let mut local = self.package(part).to_vec();
        local.push(root.clone());
        if self.rule_at_or_below(&local) {
            local.extend_from_slice(rest);
            return Some(local);
        }
        let alias = self.alias(part, root)?;
        let mut path = alias.path.clone();
        path.extend_from_slice(rest);
        (path.first().map(String::as_str) == Some("data")).then_some(path)
    }

    /// Paths that rules refer to or call, each with the rule that does.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, Path)> {
        self.rules.iter().enumerate().flat_map(move |(index, rule)| {
            let references = rule.facts.references.iter().map(|it| walk::names(it.root, &it.steps));
            let calls = rule.facts.calls.iter().map(|call| call.path.clone());
            references.chain(calls).filter_map(move |names| Some((index, self.resolve(rule.part, &names)?)))
        })
    }

    /// The rules at a path, below it, or whose value it asks for a part.
    pub(super) fn touched(&self, path: &[String]) -> impl Iterator<Item = usize> {
        let above =
            (1..path.len()).filter_map(|length| path.get(..length)).filter_map(|prefix| self.by_path.get(prefix));
        above.chain(below(&self.by_path, path).map(|(_, rules)| rules)).flatten().copied()
    }

    /// What an imported name stands for in a module's package.
    pub(super) fn alias(&self, part: usize, name: &str) -> Option<&Alias<'a>> {
        let key = (self.package(part).to_vec(), name.to_owned());
        self.aliases.get(&key).and_then(|aliases| aliases.last())
    }
}

/// Entries at a path or below it.
pub(super) fn below<'m, T>(map: &'m BTreeMap<Path, T>, path: &[String]) -> impl Iterator<Item = (&'m Path, &'m T)> {
    let from = (Bound::Included(path), Bound::Unbounded);
    map.range::<[String], _>(from).take_while(move |(found, _)| found.starts_with(path))
}

/// The reference that a rule's head begins with.
pub(super) fn reference(rule: &Rule) -> &Ref<Expr> {
    match rule {
        Rule::Default { refr, .. } => refr,
        Rule::Spec { head, .. } => match head {
            RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } | RuleHead::Func { refr, .. } => refr,
        },
    }
}

/// The arguments, where a rule is a function.
pub(super) fn arguments(rule: &Rule) -> Option<&[Ref<Expr>]> {
    match rule {
        Rule::Spec { head: RuleHead::Func { args, .. }, .. } => Some(args),
        Rule::Default { args, .. } if !args.is_empty() => Some(args),
        _ => None,
    }
}

/// A path as an author writes it: without `data` and the package where it is in that.
pub(super) fn shown(path: &[String], package: &[String]) -> String {
    match path.strip_prefix(package) {
        Some(rest) if !rest.is_empty() => rest.join("."),
        _ => path.join("."),
    }
}
