//! Policies that change while they are asked: how soon an edit is in force, that each verdict is that of a state which was in
//! force, and what a replica says that starts while nobody can tell it its policies.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::direct::{Direct, review};
use crate::workloads::pod;

const SOON: Duration = Duration::from_mins(1);
/// What no edit takes that is not stuck.
const STUCK: Duration = Duration::from_secs(10);
const MAPS: &str = "/api/v1/namespaces/slicegate-system/configmaps";
const SECRETS: &str = "/api/v1/namespaces/slicegate-system/secrets";
const EDITS: usize = 50;

/// Refuses Pods of the team `blocked` with this message.
fn rules(message: &str) -> String {
    format!("package live\n\ndeny contains \"{message}\" if input.request.object.metadata.labels.team == \"blocked\"\n")
}

fn policy(name: &str, rules: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"live.rego": rules},
        "metadata": {"name": name, "namespace": "slicegate-system", "labels": {"slicegate.io/policy": "true"}}})
}

/// A review that the policies here refuse.
fn blocked() -> String {
    let mut blocked = pod("trainer-0", "1");
    blocked["metadata"]["labels"]["team"] = "blocked".into();
    review("team", &blocked)
}

fn start() -> Result<Cluster> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    Ok(cluster)
}

/// The members of a policy's report that tell its state.
fn reported(slicegate: &Slicegate, name: &str) -> Option<(String, String)> {
    let (_, text) = slicegate.admin("/policies").ok()?;
    let all: Vec<Value> = serde_json::from_str(&text).ok()?;
    let one = all.into_iter().find(|report| report["name"] == name)?;
    Some((one["state"].as_str()?.to_owned(), one["digest"].as_str()?.to_owned()))
}

#[test]
fn an_edit_is_soon_in_force_on_all_replicas() -> Result<()> {
    let cluster = start()?;
    let replicas = [Slicegate::start(&cluster)?, Slicegate::start(&cluster)?];
    let mut asked = [Direct::to(&replicas[0], &cluster)?, Direct::to(&replicas[1], &cluster)?];
    let (review, mut took) = (blocked(), Vec::new());
    cluster.apply(&policy("live", &rules("edit 0.")))?;
    for edit in 0..=EDITS {
        let message = format!("edit {edit}.");
        if edit > 0 {
            let data = json!({"data": {"live.rego": rules(&message)}});
            cluster.api("PATCH", &format!("{MAPS}/live"), Some(&data))?.success()?;
        }
        let written = Instant::now();
        for replica in &mut asked {
            while !replica.ask(&review, 10)?.message.contains(&message) {
                ensure!(written.elapsed() < STUCK, "{message} is not in force after {STUCK:?}");
            }
        }
        took.push(written.elapsed());
    }
    let both = (reported(&replicas[0], "live"), reported(&replicas[1], "live"));
    ensure!(both.0.is_some() && both.0 == both.1, "{both:?}");
    took.sort_unstable();
    writeln!(
        std::io::stderr(),
        "edits in force on two replicas after: p50 {:?}, p99 {:?}, most {:?}",
        took[took.len() / 2],
        took[took.len() * 99 / 100 - 1],
        took[took.len() - 1]
    )?;
    Ok(())
}

/// A state that was offered; its place among them is its number.
struct Offered {
    /// Just before the write was sent.
    at: Instant,
    /// Whether it refuses, with its number in the message.
    refuses: bool,
}

/// What one review was answered with.
struct Seen {
    start: Instant,
    end: Instant,
    /// The number in the message; nothing where the review was let through.
    number: Option<usize>,
}

/// Asks until it is over.
fn load(replica: &mut Direct, over: &AtomicBool) -> Result<Vec<Seen>> {
    let (review, mut all) = (blocked(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        let verdict = replica.ask(&review, 10)?;
        let end = Instant::now();
        let number = number(&verdict.message);
        ensure!(verdict.allowed == number.is_none(), "{verdict:?}");
        all.push(Seen { start, end, number });
    }
    Ok(all)
}

fn number(message: &str) -> Option<usize> {
    message.split_once("state ")?.1.split_once('.')?.0.parse().ok()
}

/// Whether each reply is that of a state which was in force while it ran: one that was offered before the reply ended, and
/// none older than what any reply showed that had ended before this one began. Gives the numbers of the states that were seen.
fn fit(offered: &[Offered], mut seen: Vec<Seen>) -> Result<Vec<usize>> {
    seen.sort_by_key(|seen| seen.end);
    // The newest state that was seen by the end of each reply.
    let mut newest = Vec::<(Instant, usize)>::new();
    let mut states = Vec::new();
    for one in seen {
        let ended = newest.partition_point(|(end, _)| *end < one.start);
        let floor = ended.checked_sub(1).map_or(0, |last| newest[last].1);
        let lets_through = || (floor..offered.len()).find(|state| !offered[*state].refuses);
        let state = one.number.or_else(lets_through).with_context(|| format!("let through after state {floor}"))?;
        ensure!(state >= floor, "state {state} came after state {floor}");
        ensure!(offered[state].at <= one.end, "state {state} was seen before it was offered, after state {floor}");
        newest.push((one.end, newest.last().map_or(state, |last| last.1.max(state))));
        states.push(state);
    }
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

/// Edits the one policy of a cluster, and keeps account of it.
struct Author<'c> {
    cluster: &'c Cluster,
    replica: Direct,
    offered: Vec<Offered>,
}

impl Author<'_> {
    /// Offers another message, by this method.
    fn write(&mut self, method: &str, path: &str) -> Result<()> {
        let rules = rules(&format!("state {}.", self.offered.len()));
        self.offered.push(Offered { at: Instant::now(), refuses: true });
        self.cluster.api(method, path, Some(&policy("live", &rules)))?.success().map(drop)
    }

    fn edit(&mut self) -> Result<()> {
        self.write("PUT", &format!("{MAPS}/live"))
    }

    fn delete(&mut self) -> Result<()> {
        self.offered.push(Offered { at: Instant::now(), refuses: false });
        self.cluster.api("DELETE", &format!("{MAPS}/live"), None)?.success().map(drop)
    }

    /// Returns when the newest state is in force.
    fn settle(&mut self) -> Result<()> {
        let last = self.offered.len() - 1;
        let wanted = self.offered[last].refuses.then_some(last);
        wait(SOON, "the newest state", || {
            let verdict = self.replica.ask(&blocked(), 10).ok()?;
            (number(&verdict.message) == wanted).then_some(())
        })
    }

    /// Edits, deletes and creates, now one after the other and now as fast as it goes.
    fn work(&mut self, rounds: usize) -> Result<()> {
        for round in 0..rounds {
            for _ in 0..3 {
                self.edit()?;
            }
            if round % 2 == 0 {
                self.settle()?;
                let broken = json!({"data": {"live.rego": "package live\n\ndeny contains \"x\" if {\n"}});
                self.cluster.api("PATCH", &format!("{MAPS}/live"), Some(&broken))?.success()?;
            }
            self.delete()?;
            if round % 2 == 0 {
                self.settle()?;
            }
            self.write("POST", MAPS)?;
            if round % 4 < 2 {
                self.settle()?;
            }
        }
        self.settle()
    }
}

#[test]
fn each_verdict_under_edits_deletions_and_relists_is_that_of_a_state_in_force() -> Result<()> {
    let cluster = start()?;
    let slicegate = Slicegate::start(&cluster)?;
    let mut author = Author { cluster: &cluster, replica: Direct::to(&slicegate, &cluster)?, offered: Vec::new() };
    author.write("POST", MAPS)?;
    author.settle()?;
    let over = AtomicBool::new(false);
    let mut asked = [Direct::to(&slicegate, &cluster)?, Direct::to(&slicegate, &cluster)?];
    let (worked, seen) = std::thread::scope(|scope| {
        let loads = asked.each_mut().map(|replica| scope.spawn(|| load(replica, &over)));
        let worked = (|| {
            author.work(8)?;
            cluster.stop_apiserver();
            cluster.start_apiserver()?;
            author.work(4)
        })();
        over.store(true, Ordering::Relaxed);
        (worked, loads.map(|load| load.join().expect("no panic")))
    });
    worked?;
    let mut all = Vec::new();
    for seen in seen {
        all.extend(seen?);
    }
    let (replies, offered) = (all.len(), author.offered.len());
    let through = all.iter().filter(|seen| seen.number.is_none()).count();
    let states = fit(&author.offered, all)?;
    ensure!(states.len() > 12 && through > 0, "{} states were seen, {through} replies let through", states.len());
    writeln!(std::io::stderr(), "{replies} replies fit: {offered} states offered, {} seen", states.len())?;
    Ok(())
}

#[test]
fn a_replica_that_starts_without_the_api_server_lets_nothing_through_until_it_knows_its_policies() -> Result<()> {
    let cluster = start()?;
    let slicegate = Slicegate::start(&cluster)?;
    cluster.apply(&policy("good", &rules("good one.")))?;
    cluster.apply(&policy("kept", &rules("kept one.")))?;
    for name in ["good", "kept"] {
        wait(SOON, "what is kept", || {
            let kept = cluster.api("GET", &format!("{SECRETS}/slicegate-last-good-{name}"), None).ok()?;
            (kept.status == 200).then_some(())
        })?;
    }
    cluster.apply(&policy("kept", "package live\n\ndeny contains \"x\" if {\n"))?;
    wait(SOON, "the bad edit", || reported(&slicegate, "kept").filter(|(state, _)| state == "LastGood"))?;
    drop(slicegate);

    cluster.stop_apiserver();
    let replicas = [Slicegate::launch(&cluster)?, Slicegate::launch(&cluster)?];
    let (refused, fine) = (blocked(), review("team", &pod("trainer-1", "1")));
    let unread = |slicegate: &Slicegate| -> Result<()> {
        let (status, text) = slicegate.admin("/readyz?verbose")?;
        ensure!(status == 503 && text.contains("[-]policies"), "{status} {text}");
        for review in [&refused, &fine] {
            let verdict = Direct::to(slicegate, &cluster)?.ask(review, 1)?;
            ensure!(!verdict.allowed && verdict.message.contains("not read yet"), "{verdict:?}");
        }
        Ok(())
    };
    replicas.iter().try_for_each(unread)?;
    cluster.start_apiserver()?;
    for slicegate in &replicas {
        let mut replica = Direct::to(slicegate, &cluster)?;
        let mut look = |ready: bool| -> Result<()> {
            let verdict = replica.ask(&refused, 1)?;
            let knows = verdict.message.contains("good one.") && verdict.message.contains("kept one.");
            let waits = !ready && verdict.message.contains("not read yet");
            ensure!(!verdict.allowed && (knows || waits), "ready: {ready}, {verdict:?}");
            Ok(())
        };
        wait(SOON, "the replica to be ready", || {
            let ready = slicegate.admin("/readyz").is_ok_and(|(status, _)| status == 200);
            // An error is an answer too: it ends the wait.
            let looked = look(ready);
            (ready || looked.is_err()).then_some(looked)
        })??;
        ensure!(replica.ask(&fine, 10)?.allowed, "what no policy refuses is let through");
        ensure!(reported(slicegate, "kept").is_some_and(|(state, _)| state == "LastGood"), "the bad edit is told");
    }
    Ok(())
}
