//! The log: one line for each event, as JSON or as text, on standard output.
//!
//! What it does: formats events where they happen and hands the lines to a thread that writes them. What it does not: make
//! a request wait for whoever reads the log. Invariant: a line is whole or missing; those that are missing are counted.

use std::cell::RefCell;

use anyhow::Context as _;
use prometheus_client::metrics::counter::Counter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

mod format;
mod writer;

use writer::Writer;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Holds the log open; what is still to be written is written when it is dropped.
#[derive(Debug)]
pub struct Log(Writer);

impl Log {
    /// Counts lines that were left out since nobody read them.
    pub fn dropped(&self) -> Counter {
        self.0.dropped()
    }
}

/// Starts the log of this process. `filter` is a level, or levels for parts of the program: `info,kube=debug`.
///
/// # Errors
/// Where the filter cannot be read, or a log runs already.
pub fn start(format: Format, filter: Targets) -> anyhow::Result<Log> {
    let writer = Writer::start(std::io::stdout()).context("cannot start the log's thread")?;
    let lines = Lines { format, sink: writer.sink() };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().context("a log runs already")?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let reason = panic.payload_as_str().unwrap_or("no reason given");
        tracing::error!(place, reason, "panic");
    }));
    Ok(Log(writer))
}

/// Turns events into lines.
struct Lines {
    format: Format,
    sink: writer::Sink,
}

thread_local! {
    /// Where a thread builds its lines, so that one is allocated rarely.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        LINE.with(|line| {
            // An event within the formatting of an event is left out.
            let Ok(mut line) = line.try_borrow_mut() else { return };
            line.clear();
            match self.format {
                Format::Json => format::json(event, &mut line),
                Format::Text => format::text(event, &mut line),
            }
            self.sink.write(&line);
        });
    }
}
