//! The oracle: Kubernetes' own answers to the questions that slicegate answers
//! with code of its own. It needs no cluster. What it can be asked is described
//! in tests/e2e/controlplane/oracle.go and the files beside it.

use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{process, programs};

/// A running oracle, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Oracle {
    child: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

// === impl Oracle ===

impl Oracle {
    pub(crate) fn start() -> Result<Self> {
        let folder = programs::folder()?;
        let mut child = process::command(&folder.join("oracle"), &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the oracle cannot be started")?;
        let questions = child.stdin.take().context("the oracle has no input")?;
        let answers = child.stdout.take().context("the oracle has no output")?;
        Ok(Self { child, questions: BufWriter::new(questions), answers: BufReader::new(answers) })
    }

    /// Asks one question. What the oracle could not answer is an answer with
    /// the field `error`, not an error.
    pub(crate) fn ask(&mut self, question: &Value) -> Result<Value> {
        write_line(&mut self.questions, question)?;
        self.questions.flush().context("the oracle takes no more questions")?;
        read_line(&mut self.answers)
    }

    /// Asks many questions at once; the answers have the questions' order.
    pub(crate) fn ask_all(&mut self, questions: &[Value]) -> Result<Vec<Value>> {
        let Self { questions: input, answers: output, .. } = self;
        // Writing needs a thread of its own: with both pipes full each side
        // would wait for the other to read.
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || {
                questions.iter().try_for_each(|question| write_line(input, question))?;
                input.flush().context("the oracle takes no more questions")
            });
            let answers = questions.iter().map(|_| read_line(output)).collect();
            match writing.join() {
                Ok(written) => written.and(answers),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_line(input: &mut impl Write, question: &Value) -> Result<()> {
    writeln!(input, "{question}").context("the oracle takes no more questions")
}

fn read_line(output: &mut BufReader<ChildStdout>) -> Result<Value> {
    let mut line = String::new();
    output.read_line(&mut line).context("the oracle's answer cannot be read")?;
    anyhow::ensure!(!line.is_empty(), "the oracle has ended; its last words stand above");
    serde_json::from_str(&line).with_context(|| format!("the oracle's answer is not JSON: {line}"))
}
