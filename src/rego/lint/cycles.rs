//! Rules and functions that depend on themselves, and chains of them that are too deep.
//!
//! The engine notices a rule that needs itself only when it is evaluated, and a function that calls itself overflows the stack,
//! which ends the process. A reference to a package, or through a variable (`data[x]`), needs all rules below it.

use std::collections::BTreeMap;

use super::Report;
use super::model::{Model, Path, shown};
use super::position::at;
use super::walk::{Purpose, names};

/// Levels of rules, each as deep as its expressions: what a stack of 2 MiB was seen to hold, and half of that kept free. A rule
/// counts for eight levels. Seen: between 400 and 800 rules that do nothing but need the next.
const MAX_LEVELS: usize = 1600;
const RULE_LEVELS: usize = 8;

/// Cycles that are named at most.
const MAX_CYCLES: usize = 10;

/// Checks how rules depend on each other.
pub(super) fn check(model: &Model<'_>, report: &mut Report) {
    let graph = Graph::of(model);
    let mut search = Search { graph: &graph, model, state: vec![State::New; graph.edges.len()], cycles: Vec::new() };
    for node in 0..graph.edges.len() {
        search.from(node);
    }
    let cycles = std::mem::take(&mut search.cycles);
    for cycle in cycles.iter().take(MAX_CYCLES) {
        report_cycle(model, cycle, report);
    }
    if cycles.is_empty() {
        report_depth(model, &search.state, report);
    }
}

/// Paths that have rules at or below them. The node of a path leads to the nodes one step below it; where rules are at that very
/// path, to what they need as well.
struct Graph {
    paths: Vec<Path>,
    edges: Vec<Vec<usize>>,
    /// Nodes below this number are rules; the others stand for all that is at and below a path.
    rules: usize,
}

impl Graph {
    fn of(model: &Model<'_>) -> Self {
        let paths: Vec<Path> = model.by_path.keys().cloned().collect();
        let rules = paths.len();
        let rule_nodes: BTreeMap<&[String], usize> =
            paths.iter().enumerate().map(|(node, path)| (path.as_slice(), node)).collect();
        let mut groups: BTreeMap<Path, usize> = BTreeMap::new();
        for path in &paths {
            for length in 1..=path.len() {
                let prefix = path.get(..length).unwrap_or_default().to_vec();
                let next = rules.saturating_add(groups.len());
                groups.entry(prefix).or_insert(next);
            }
        }
        let mut edges = vec![Vec::new(); rules.saturating_add(groups.len())];
        for (prefix, &group) in &groups {
            if let Some(&rule) = rule_nodes.get(prefix.as_slice()) {
                push(&mut edges, group, rule);
            }
            if let Some(parent) = prefix.split_last().and_then(|(_, parent)| groups.get(parent)) {
                push(&mut edges, *parent, group);
            }
        }
        for (node, path) in paths.iter().enumerate() {
            for needed in needs(model, path) {
                for length in 1..needed.len() {
                    let prefix = needed.get(..length).unwrap_or_default();
                    if let Some(&rule) = rule_nodes.get(prefix) {
                        push(&mut edges, node, rule);
                    }
                }
                if let Some(&group) = groups.get(&needed) {
                    push(&mut edges, node, group);
                }
            }
        }
        for list in &mut edges {
            list.sort_unstable();
            list.dedup();
        }
        Self { paths, edges, rules }
    }
}

fn push(edges: &mut [Vec<usize>], from: usize, to: usize) {
    if let Some(list) = edges.get_mut(from) {
        list.push(to);
    }
}

/// The paths that the rules at a path need.
fn needs(model: &Model<'_>, path: &Path) -> Vec<Path> {
    let mut needed = Vec::new();
    for rule in model.by_path.get(path).into_iter().flatten().filter_map(|index| model.rules.get(*index)) {
        let references = rule.facts.references.iter().filter(|reference| reference.purpose != Purpose::Replaced);
        needed.extend(references.filter_map(|it| model.resolve(rule.part, &names(it.root, &it.steps))));
        needed.extend(rule.facts.calls.iter().filter_map(|call| model.resolve(rule.part, &call.path)));
    }
    needed
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    /// Done, with the levels of the longest chain from here.
    Done(usize),
}

struct Search<'g, 'm> {
    graph: &'g Graph,
    model: &'g Model<'m>,
    state: Vec<State>,
    cycles: Vec<Vec<Path>>,
}

impl Search<'_, '_> {
    /// Depth first, on a stack of its own.
    fn from(&mut self, start: usize) {
        if self.state.get(start) != Some(&State::New) {
            return;
        }
        let mut stack = vec![(start, 0_usize)];
        self.set(start, State::Open);
        while let Some((node, edge)) = stack.last_mut() {
            let next = self.graph.edges.get(*node).and_then(|edges| edges.get(*edge)).copied();
            *edge = edge.saturating_add(1);
            let node = *node;
            match next.map(|next| (next, self.state.get(next).copied())) {
                Some((next, Some(State::New))) => {
                    self.set(next, State::Open);
                    stack.push((next, 0));
                }
                Some((next, Some(State::Open))) => self.cycle(&stack, next),
                Some(_) => {}
                None => {
                    let levels = self.levels(node);
                    self.set(node, State::Done(levels));
                    stack.pop();
                }
            }
        }
    }

    fn set(&mut self, node: usize, state: State) {
        if let Some(slot) = self.state.get_mut(node) {
            *slot = state;
        }
    }

    fn levels(&self, node: usize) -> usize {
        let edges = self.graph.edges.get(node).map_or(&[] as &[usize], Vec::as_slice);
        let below = edges.iter().filter_map(|next| match self.state.get(*next) {
            Some(State::Done(levels)) => Some(*levels),
            _ => None,
        });
        below.max().unwrap_or(0).saturating_add(self.own_levels(node))
    }

    fn own_levels(&self, node: usize) -> usize {
        if node >= self.graph.rules {
            return 0;
        }
        let rules = self.graph.paths.get(node).and_then(|path| self.model.by_path.get(path));
        let rules = rules.into_iter().flatten().filter_map(|index| self.model.rules.get(*index));
        rules.map(|rule| rule.facts.depth).max().unwrap_or(0).saturating_add(RULE_LEVELS)
    }

    fn cycle(&mut self, stack: &[(usize, usize)], back_to: usize) {
        let from = stack.iter().position(|(node, _)| *node == back_to).unwrap_or(0);
        let nodes = stack.iter().skip(from).map(|(node, _)| *node).filter(|node| *node < self.graph.rules);
        let mut paths: Vec<Path> = nodes.filter_map(|node| self.graph.paths.get(node).cloned()).collect();
        // Begin at the first by name, so that one cycle has one form.
        if let Some(first) = (0..paths.len()).min_by_key(|index| paths.get(*index)) {
            paths.rotate_left(first);
        }
        if !paths.is_empty() && !self.cycles.contains(&paths) && self.cycles.len() < MAX_CYCLES {
            self.cycles.push(paths);
        }
    }
}

fn report_cycle(model: &Model<'_>, cycle: &[Path], report: &mut Report) {
    let Some(rule) = cycle.first().and_then(|path| model.by_path.get(path)).and_then(|rules| rules.first()) else {
        return;
    };
    let Some(rule) = model.rules.get(*rule) else { return };
    let package = model.package(rule.part);
    let names: Vec<String> = cycle.iter().chain(cycle.first()).map(|path| shown(path, package)).collect();
    let message =
        format!("{} need each other without end; a rule or function must not lead back to itself", names.join(" -> "));
    let message = if cycle.len() == 1 { message.replacen("need each other", "needs itself", 1) } else { message };
    report.errors.push(at(rule.rule.span(), message));
}

fn report_depth(model: &Model<'_>, state: &[State], report: &mut Report) {
    let deepest = model.by_path.values().zip(state).find_map(|(rules, state)| match state {
        State::Done(levels) if *levels > MAX_LEVELS => rules.first(),
        _ => None,
    });
    if let Some(rule) = deepest.and_then(|index| model.rules.get(*index)) {
        let message = "rules that need each other are chained so deep from here that evaluating them would overflow the stack; \
                       let one rule do more";
        report.errors.push(at(rule.rule.span(), message));
    }
}
