//! Runs one case that is about policy sets: loads them round by round, and posts its request after each.
//!
//! Invariant: a case that loads nothing fails, and so does one whose first sets are not good.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use crate::case::{Case, Concurrent, Expect};
use crate::check::complaints;
use crate::memory;
use crate::run::{self, Probe};
use crate::scene::{Loaded, Scene};
use crate::sets::{self, Sets, Step};
use crate::wire::Target;

/// Held by all cases that run, and by one alone whose memory is measured.
static MEASURED: RwLock<()> = RwLock::new(());

/// How many requests are under way at a time.
const CLIENTS: usize = 2;

/// Runs a case that measures nothing beside others, and one that does by itself.
pub(crate) fn beside<T>(case: &Case, run: impl FnOnce() -> T) -> T {
    if most_growth(&case.expect).is_some() {
        let _alone = MEASURED.write().expect("no case panics here");
        return run();
    }
    let _together = MEASURED.read().expect("no case panics here");
    run()
}

/// Runs a case; what comes back is all that is wrong.
pub(crate) fn run(case: &Case, expects: &[&Expect]) -> Result<(Vec<String>, Target, Scene), String> {
    let mut scene = Scene::start(case)?;
    if let Some(before) = &case.before {
        let loaded = scene.apply(&in_syntax(case, before).configmaps)?;
        if loaded.reports.iter().any(|report| report.state != "Loaded" || !report.errors.is_empty()) {
            return Err(format!("what is there before is not good: {:?}", loaded.reports));
        }
    }
    let workers = scene.workers.clone();
    let (round, grown) = memory::growth(&workers, || first_round(case, &mut scene, expects));
    let mut found = round?;
    if let Some(most) = most_growth(&case.expect).filter(|most| grown > *most) {
        found.push(format!("server and workers grew by {grown} MiB, more than {most}"));
    }
    if let Some(then) = &case.then {
        if let Some(concurrent) = expects.iter().find_map(|expect| expect.concurrent.as_ref()) {
            found.extend(replace(case, &mut scene, concurrent)?);
        }
        let loaded = scene.apply(&in_syntax(case, &then.policy).configmaps)?;
        if let Some(expect) = &then.expect {
            let target = with(&scene, loaded);
            found.extend(run::run_reviews(case, &target, &[expect])?.into_iter().map(|what| format!("then {what}")));
        }
    }
    let target = scene.target.clone();
    Ok((found, target, scene))
}

fn first_round(case: &Case, scene: &mut Scene, expects: &[&Expect]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let loaded = if expects.iter().any(|expect| expect.at_every_moment == Some(true)) {
        let target = scene.target.clone();
        let check = |probe: &Probe| {
            let outcome = run::post(&target, probe)?;
            let told: Vec<String> = expects.iter().flat_map(|expect| complaints(expect, &outcome)).collect();
            if told.is_empty() { Ok(()) } else { Err(format!("meanwhile: {}", told.join("; "))) }
        };
        let (loaded, wrong) = meanwhile(case, 1, check, || load(case, scene))?;
        found.extend(wrong);
        loaded?
    } else {
        load(case, scene)?
    };
    let target = with(scene, loaded);
    found.extend(run::run_reviews(case, &target, expects)?);
    Ok(found)
}

/// Loads what a case is about.
fn load(case: &Case, scene: &mut Scene) -> Result<Loaded, String> {
    let mut last = None;
    if let Some(policy) = &case.policy {
        let mut manifests = in_syntax(case, policy).configmaps;
        if case.expect.network_calls.is_some() {
            manifests = scene.led_here(&manifests)?;
        }
        last = Some(scene.apply(&manifests)?);
    }
    for step in case.steps().map(|steps| steps.steps.as_slice()).unwrap_or_default() {
        last = Some(match step {
            Step::Apply(manifest) => scene.apply(std::slice::from_ref(manifest))?,
            Step::Delete(name) => scene.delete(name)?,
            Step::Generate(words) => {
                let base = scene.manifest("team-policy").ok_or("nothing to generate from")?;
                let manifest = sets::generate(words, base)?;
                scene.apply(&[manifest])?
            }
        });
    }
    if let Some(files) = case.steps().and_then(|steps| steps.files.as_ref()) {
        last = Some(scene.mount(files)?);
    }
    last.ok_or_else(|| "the case loads nothing".into())
}

/// Replaces the sets by those of the second round and back, again and again, while requests are judged.
fn replace(case: &Case, scene: &mut Scene, concurrent: &Concurrent) -> Result<Vec<String>, String> {
    let first = in_syntax(case, case.policy.as_ref().ok_or("nothing to replace")?);
    let second = in_syntax(case, &case.then.as_ref().ok_or("nothing to replace it by")?.policy);
    let target = scene.target.clone();
    let seen: Vec<AtomicUsize> = concurrent.every_reply_is_one_of.iter().map(|_| AtomicUsize::new(0)).collect();
    let check = |probe: &Probe| {
        let answer = run::post(&target, probe)?.answer.ok_or("meanwhile: no answer")?;
        let place = concurrent.every_reply_is_one_of.iter().position(|text| answer.message().contains(text));
        match place.filter(|_| !answer.response.allowed) {
            Some(place) => drop(seen[place].fetch_add(1, Ordering::Relaxed)),
            None => return Err(format!("meanwhile: {:?}", answer.reply)),
        }
        Ok(())
    };
    let (replaced, mut wrong) = meanwhile(case, concurrent.requests, check, || {
        for place in 0..concurrent.replacements {
            let sets = if place % 2 == 0 { &second } else { &first };
            scene.apply(&sets.configmaps)?;
        }
        Ok::<(), String>(())
    })?;
    replaced?;
    for (text, seen) in concurrent.every_reply_is_one_of.iter().zip(&seen) {
        if seen.load(Ordering::Relaxed) == 0 {
            wrong.push(format!("no reply had {text:?}, so nothing was replaced while requests ran"));
        }
    }
    Ok(wrong)
}

/// Posts the case's request all the while, and at least so many times; what comes back with the work's result is what was
/// wrong with the answers.
fn meanwhile<T>(
    case: &Case,
    least: usize,
    check: impl Fn(&Probe) -> Result<(), String> + Sync,
    work: impl FnOnce() -> T,
) -> Result<(T, Vec<String>), String> {
    let probes = run::probes(case)?;
    let (posted, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let post = || {
        for probe in probes.iter().cycle() {
            let number = posted.fetch_add(1, Ordering::Relaxed);
            if over.load(Ordering::Relaxed) && number >= least {
                break;
            }
            check(probe)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(post)).collect();
        let result = work();
        over.store(true, Ordering::Relaxed);
        let wrong = clients.into_iter().filter_map(|client| client.join().expect("no panic").err()).collect();
        Ok((result, wrong))
    })
}

fn with(scene: &Scene, loaded: Loaded) -> Target {
    Target { loaded: Some(Arc::new(loaded)), ..scene.target.clone() }
}

fn in_syntax(case: &Case, sets: &Sets) -> Sets {
    let v0 = case.settings.as_ref().is_some_and(|settings| settings.rego_v0 == Some(true));
    if v0 { sets::marked_v0(sets) } else { sets.clone() }
}

fn most_growth(expect: &Expect) -> Option<u64> {
    expect.max_rss_growth_mib
}
