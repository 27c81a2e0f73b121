//! The worker process: compiles sets, judges requests, and cannot do anything else.
//!
//! What it does: reads orders from the socket that is its standard input and answers them there. Before it looks at the first
//! one it gives up the right to open files or sockets and to use more memory than it was given. Its standard output is a file
//! in memory in which it notes which set it is about to run, so that whoever finds it dead knows whom to blame. Invariant:
//! it ends by itself when its time is up, when its memory is, and when nobody speaks to it any more.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::protocol::{self, Asked, Check, Checked, Evaluation, Id, Loaded, MAX_FRAME, Order, Sample};
use super::watchdog::{self, Watchdog};
use crate::policy::Phase;
use crate::rego::engine::Budget;
use crate::rego::input::{Context, Input, Workload};
use crate::rego::lint::Report;
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::problem::Problem;
use crate::rego::program::Program;
use crate::rego::screen::Screen;
use crate::rego::testing;
use crate::rego::value::Keys;
use crate::review;

/// The stack on which policies run. A deep one costs nothing until it is used, and what nests deep but not endlessly gets
/// through.
const STACK: usize = 64 << 20;

/// A request of more bytes than this may take memory and time of its own, so many times its bytes and so long for each MiB.
const LARGE: u64 = 256 << 10;
const GROWTH: u64 = 40;
const READING: Duration = Duration::from_millis(300);

/// What a worker process is told when it starts.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The processor time of one evaluation.
    pub budget: Duration,
    /// The processor time of compiling and checking one set.
    pub compile_budget: Duration,
    /// The bytes that it may use beyond those that loaded sets take.
    pub memory: u64,
}

/// Runs until the other side of the socket is gone.
///
/// # Errors
/// It was not started as a worker.
pub fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let socket = UnixStream::from(duplicate(std::io::stdin().as_fd())?);
    let notes = File::from(duplicate(std::io::stdout().as_fd())?);
    let memory = File::open("/proc/self/statm").context("cannot read how much memory is used")?;
    let watchdog = Arc::new(Watchdog::default());
    let worker = Worker {
        settings,
        notes,
        memory,
        watchdog: Arc::clone(&watchdog),
        sets: HashMap::new(),
        noted: None,
        keys: Keys::default(),
        probe: None,
    };
    let thread = std::thread::Builder::new().name("rego".to_owned()).stack_size(STACK);
    let work = thread.spawn(move || {
        let ended = worker.serve(&socket);
        // The watchdog never ends by itself; nobody is there any more to tell why the work did.
        std::process::exit(i32::from(ended.is_err()));
    });
    work.context("cannot start the thread that runs policies")?;
    watchdog.watch();
    Ok(ExitCode::SUCCESS)
}

fn duplicate(descriptor: std::os::fd::BorrowedFd<'_>) -> anyhow::Result<OwnedFd> {
    descriptor.try_clone_to_owned().context("a worker is started by the server, with a socket as its standard input")
}

struct Worker {
    settings: Settings,
    notes: File,
    memory: File,
    watchdog: Arc<Watchdog>,
    sets: HashMap<Id, Program>,
    /// The set that the notes name.
    noted: Option<Id>,
    keys: Keys,
    /// The request that new sets are tried on, once it was read.
    probe: Option<Input>,
}

impl Worker {
    fn serve(mut self, socket: &UnixStream) -> anyhow::Result<()> {
        shut_doors()?;
        self.limit_memory()?;
        let mut reader = BufReader::with_capacity(256 << 10, socket);
        let mut payload = Vec::new();
        loop {
            if reader.fill_buf()?.is_empty() {
                return Ok(());
            }
            read_frame(&mut reader, &mut payload)?;
            let answer = match protocol::asked(&payload)? {
                Asked::Evaluate(evaluation) => {
                    let outcomes = self.evaluate(&evaluation)?;
                    self.note(None);
                    Some(protocol::frame(&outcomes))
                }
                Asked::Order(order) => self.obey(*order)?,
            };
            self.note(None);
            // Before the next request begins, which may be the end of this process.
            if let Some(answer) = answer {
                (&mut &*socket).write_all(&answer)?;
            }
        }
    }

    /// Does anything but judging.
    fn obey(&mut self, order: Order) -> anyhow::Result<Option<Vec<u8>>> {
        let answer = match order {
            Order::Load { id, unit } => {
                let budget = self.settings.compile_budget;
                let compiled = self.guarded(Some(id), budget, |_, _| caught(|| Program::compile(&unit)));
                let (program, report) = compiled.unwrap_or_else(|failure| (None, not_compiled(&failure.explain())));
                let screen = program.map(|mut program| {
                    let screen = self.screen(id, &mut program);
                    self.sets.insert(id, program);
                    screen
                });
                Some(protocol::frame(&Loaded { screen, report }))
            }
            Order::Unload(id) => {
                self.sets.remove(&id);
                None
            }
            Order::Check(check) => {
                let checked = self.check(&check);
                Some(protocol::frame(&checked))
            }
        };
        self.limit_memory()?;
        Ok(answer)
    }

    /// Compiles a set, tries it on a request that every policy should be ready for, runs its tests, and judges samples.
    fn check(&mut self, check: &Check) -> Checked {
        let (compiling, limit) = (self.settings.compile_budget, self.settings.budget);
        let compiled = self.guarded(None, compiling, |_, _| caught(|| Program::compile(&check.unit)));
        let (program, report) = compiled.unwrap_or_else(|failure| (None, not_compiled(&failure.explain())));
        let mut checked = Checked { report, ..Checked::default() };
        let Some(mut program) = program else { return checked };
        checked.speaks = program.speaks();
        for phase in [Phase::Validate, Phase::Mutate] {
            if let Some(failure) = self.judge_sample(&mut program, &probe(phase), limit).error {
                tried(&failure, &mut checked.report);
            }
        }
        if let Some(options) = &check.tests {
            // Each test has its own budget; all together have that of compiling, several times over.
            let whole = compiling.saturating_mul(5);
            let tests = self.guarded(None, whole, |_, budget| {
                caught(|| testing::run(&check.unit, options, Budget { limit, ..budget }))
            });
            match tests {
                Ok(Ok(tests)) => checked.tests = Some(tests),
                Ok(Err(problems)) => checked.report.errors.extend(problems),
                Err(failure) => {
                    checked.report.errors.push(Problem::of_set(format!("its tests: {}", failure.explain())));
                }
            }
        }
        checked.outcomes = check.samples.iter().map(|sample| self.judge_sample(&mut program, sample, limit)).collect();
        checked
    }

    /// What can be told of a set without asking it, if the engine says so too on the one request that is at hand.
    fn screen(&mut self, id: Id, program: &mut Program) -> Screen {
        let (screen, limit) = (program.screen().clone(), self.settings.budget);
        let sample = probe(Phase::Validate);
        let silent = |request| screen.is_silent(Phase::Validate, &request);
        if !review::decode(sample.body.as_bytes()).is_ok_and(silent) {
            return screen;
        }
        let judged = self.guarded(Some(id), limit, |worker, budget| {
            caught(|| {
                let mut read = || Input::new(sample.body.as_bytes(), &sample.context, &mut worker.keys).ok();
                let input = worker.probe.take().or_else(&mut read)?;
                let outcome = program.evaluate(sample.phase, &input, budget);
                worker.probe = Some(input);
                Some(outcome)
            })
        });
        if judged == Ok(Some(Outcome::default())) { screen } else { Screen::default() }
    }

    fn judge_sample(&mut self, program: &mut Program, sample: &Sample, limit: Duration) -> Outcome {
        let judged = self.guarded(None, limit, |_, budget| {
            caught(|| {
                let input = Input::new(sample.body.as_bytes(), &sample.context, &mut Keys::default());
                let input = input.map_err(|message| Failure::Error(Problem::of_set(message)));
                input.map(|input| program.evaluate(sample.phase, &input, budget))
            })
        });
        let failed = |failure| Outcome { error: Some(failure), ..Outcome::default() };
        judged.and_then(|judged| judged).unwrap_or_else(failed)
    }

    fn evaluate(&mut self, evaluation: &Evaluation<'_>) -> anyhow::Result<Vec<Outcome>> {
        let failed =
            |failure: Failure| vec![Outcome { error: Some(failure), ..Outcome::default() }; evaluation.sets.len()];
        let limit = self.settings.budget;
        // What it takes to read a request is the request's, and no policy's.
        let size = u64::try_from(evaluation.body.len())?;
        let large = size > LARGE;
        if large {
            self.allow_memory(size.saturating_mul(GROWTH))?;
        }
        let reading = limit.saturating_add(READING.saturating_mul(u32::try_from(size >> 20)?));
        let input = self.guarded(None, reading, |worker, _| {
            caught(|| Input::new(evaluation.body, &evaluation.context, &mut worker.keys))
        });
        let input = match input.and_then(|input| input.map_err(|message| Failure::Error(Problem::of_set(message)))) {
            Ok(input) => input,
            Err(failure) => return Ok(failed(failure)),
        };
        let judge = |id: &Id| {
            self.guarded(Some(*id), limit, |worker, budget| {
                let Some(program) = worker.sets.get_mut(id) else {
                    return Outcome { error: Some(Failure::NotLoaded), ..Outcome::default() };
                };
                caught(|| program.evaluate(evaluation.phase, &input, budget))
                    .unwrap_or_else(|failure| Outcome { error: Some(failure), ..Outcome::default() })
            })
        };
        let outcomes = evaluation.sets.iter().map(judge).collect();
        if large {
            drop(input);
            self.limit_memory()?;
        }
        Ok(outcomes)
    }

    /// Does something that a policy may keep from ending: with a note of the set, the watchdog awake, and its budget.
    fn guarded<T>(&mut self, id: Option<Id>, limit: Duration, work: impl FnOnce(&mut Self, Budget<'_>) -> T) -> T {
        self.note(id);
        let started = self.watchdog.begin(limit);
        let done = work(self, Budget { limit, started, clock: &watchdog::processor_time });
        self.watchdog.end();
        done
    }

    /// Notes which set runs from now on.
    fn note(&mut self, id: Option<Id>) {
        if self.noted != id {
            // Should it fail, the answers of this worker are still right; a wrong set may be blamed for its end.
            let _ = self.notes.write_all_at(&id.map_or(0, |id| id.saturating_add(1)).to_le_bytes(), 0);
            self.noted = id;
        }
    }

    /// Allows as much memory as is used now, and the budget.
    fn limit_memory(&self) -> anyhow::Result<()> {
        self.allow_memory(0)
    }

    /// The same, and more.
    fn allow_memory(&self, more: u64) -> anyhow::Result<()> {
        let mut text = [0; 128];
        let size = self.memory.read_at(&mut text, 0)?;
        let text = std::str::from_utf8(text.get(..size).unwrap_or_default())?;
        let pages: u64 =
            text.split_whitespace().nth(5).and_then(|pages| pages.parse().ok()).context("statm has no data size")?;
        let page = u64::try_from(rustix::param::page_size())?;
        let limit = pages.saturating_mul(page).saturating_add(self.settings.memory).saturating_add(more);
        let maximum = getrlimit(Resource::Data).maximum;
        let current = Some(maximum.map_or(limit, |maximum| limit.min(maximum)));
        setrlimit(Resource::Data, Rlimit { current, maximum })?;
        Ok(())
    }
}

/// Gives up what no policy needs. What is open stays open.
fn shut_doors() -> anyhow::Result<()> {
    for resource in [Resource::Nofile, Resource::Core] {
        setrlimit(resource, Rlimit { current: Some(0), maximum: Some(0) })?;
    }
    setrlimit(Resource::Fsize, Rlimit { current: Some(4096), maximum: Some(4096) })?;
    Ok(())
}

/// A panic of the engine is the policy's error.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Failure::Error(Problem::of_set(format!("the engine gave up: {}", text.unwrap_or("no reason given"))))
    })
}

fn read_frame(reader: &mut impl Read, payload: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut size = [0; 4];
    reader.read_exact(&mut size)?;
    let size = usize::try_from(u32::from_le_bytes(size))?;
    anyhow::ensure!(size <= MAX_FRAME, "a frame of {size} bytes is more than {MAX_FRAME}");
    payload.clear();
    payload.resize(size, 0);
    reader.read_exact(payload)?;
    Ok(())
}

/// A Pod in a shared pool, on which each policy is tried before it is in force.
fn probe(phase: Phase) -> Sample {
    let context = Context {
        namespace: "team".to_owned(),
        workloads: vec![Workload {
            path: String::new(),
            metadata: "/metadata".to_owned(),
            spec: "/spec".to_owned(),
            labels: None,
            latency: Some("tolerant".to_owned()),
            checkpoint: Some("true".to_owned()),
            pools: vec!["shared".to_owned()],
            demand: [("nvidia.com/gpu.shared".to_owned(), "1".to_owned())].into(),
        }],
        ..Context::default()
    };
    Sample { phase, context, body: include_str!("probe.json").to_owned() }
}

/// An error on one request may be the request's; what took all its time will do so again.
fn tried(failure: &Failure, report: &mut Report) {
    let told = format!("tried on a Pod with one share, it {}", failure.explain());
    let list = if failure.is_costly() { &mut report.errors } else { &mut report.warnings };
    list.push(match failure {
        Failure::Error(problem) => Problem {
            message: format!("tried on a Pod with one share, it fails: {}", problem.message),
            ..problem.clone()
        },
        _ => Problem::of_set(told),
    });
}

/// What a report says where compiling itself was the problem.
pub fn not_compiled(why: &str) -> Report {
    Report { errors: vec![Problem::of_set(why)], warnings: Vec::new() }
}
