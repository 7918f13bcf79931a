//! A command in a container over the channels of a WebSocket: input in, output and the exit code out.

use super::{
    IDLE, Kubelet,
    follow::FollowedLog,
    web_socket::{CloseCode, Message, WebSocket},
};
use crate::{
    exec::{self, ExecPlan, OutputStream, StdinUse},
    query::is_true,
    simulation::Simulation,
};
use bytes::Bytes;
use futures::future::{Either, select};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::{collections::VecDeque, io, pin::pin, sync::Arc, time::Duration};
use world::{Moment, World};

// Kubernetes: the first byte of a message.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// The channel of the second byte is at its end.
const END_OF: u8 = 255;

/// How long the client may take to answer the end of a session.
const FAREWELL: Duration = Duration::from_secs(5);
/// A longer line of input is an error, as it is for a terminal.
const MAX_LINE: usize = 4096;
/// What a terminal sends for Ctrl-C and Ctrl-D.
const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
/// The exit code of a command that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;
const LINE_TOO_LONG: i32 = 1;
const PROMPT: &str = "# ";

/// Which streams a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Streams {
    // Kubernetes: the names of a kubelet's parameters.
    pub(super) fn of(query: &[(String, String)]) -> Streams {
        let has = |wanted: &str| query.iter().any(|(name, value)| name == wanted && is_true(value));
        // A terminal has one output.
        let tty = has("tty");
        Streams { stdin: has("input"), stdout: has("output"), stderr: has("error") && !tty, tty }
    }

    pub(super) fn has_any(self) -> bool {
        self.stdin || self.stdout || self.stderr
    }
}

/// What a session shows.
pub(super) enum Work {
    Command { pod: Arc<Pod>, container: String, command: Vec<String>, plan: ExecPlan, input: StdinUse },
    Attach(FollowedLog),
}

pub(super) struct Session {
    pub(super) kubelet: Kubelet,
    pub(super) world: World,
    pub(super) streams: Streams,
    /// Whether the client tells when its input ends.
    pub(super) ends_input: bool,
    /// Whether the client takes the result as a Status, and not only the text of a failure.
    pub(super) tells_status: bool,
    pub(super) upgrade: OnUpgrade,
}

/// The client has left.
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Gone {
        Gone
    }
}

impl Session {
    pub(super) async fn run(self, work: Work) {
        let Session { kubelet, world, streams, ends_input, tells_status, upgrade } = self;
        let Ok(upgraded) = upgrade.await else { return };
        let socket = WebSocket::new(TokioIo::new(upgraded));
        let mut channels = Channels { kubelet, socket, streams, ends_input, tells_status, world };
        // A client that is gone is no error.
        drop(channels.run(work).await);
        channels.socket.shut_down().await;
    }
}

struct Channels {
    kubelet: Kubelet,
    socket: WebSocket<TokioIo<Upgraded>>,
    streams: Streams,
    ends_input: bool,
    tells_status: bool,
    world: World,
}

/// What a client has sent.
enum Sent {
    Input(Bytes),
    EndOfInput,
    /// The size of its terminal and the like.
    Other,
}

impl Channels {
    async fn run(&mut self, work: Work) -> Result<(), Gone> {
        // Kubernetes: an empty message tells that the connection is there.
        let first = match self.streams {
            Streams { stdout: true, .. } => STDOUT,
            Streams { stderr: true, .. } => STDERR,
            _ => ERROR,
        };
        self.socket.send(first, b"").await?;
        let status = match work {
            Work::Attach(followed) => self.attach(followed).await?,
            Work::Command { pod, container, command, plan, input } => {
                let code = match input {
                    StdinUse::Ignored => self.play(plan).await?,
                    StdinUse::Copied | StdinUse::Executed => {
                        let mut reader = InputReader { pod, container, input, line: Vec::new(), code: 0 };
                        self.interact(&mut reader).await?
                    }
                };
                status(&command, code)
            }
        };
        match &status["message"] {
            _ if self.tells_status => self.socket.send(ERROR, status.to_string().as_bytes()).await?,
            Value::String(failure) => self.socket.send(ERROR, failure.as_bytes()).await?,
            _ => {}
        }
        self.socket.close(CloseCode::Normal).await?;
        let (socket, world) = (&mut self.socket, &self.world);
        let farewell = async { while !matches!(socket.next().await, Message::End | Message::Wrong(_)) {} };
        let _ = world.timeout(FAREWELL, farewell).await;
        Ok(())
    }

    /// Writes what a command writes, when it does; returns its exit code.
    async fn play(&mut self, plan: ExecPlan) -> Result<i32, Gone> {
        let start = self.world.now();
        let mut outputs: VecDeque<_> = plan.outputs.into();
        let end = plan.end.map(|(after, code)| (start + after, code));
        loop {
            let now = self.world.now();
            while outputs.front().is_some_and(|(after, ..)| start + *after <= now) {
                let Some((_, output, text)) = outputs.pop_front() else { break };
                self.write(output, text.as_bytes()).await?;
            }
            if let Some((_, code)) = end.filter(|(at, _)| *at <= now) {
                return Ok(code);
            }
            let next = outputs.front().map(|(after, ..)| start + *after).into_iter();
            let wake = next.chain(end.map(|(at, _)| at)).min();
            if let Some(Sent::Input(bytes)) = self.next_until(wake).await?
                && self.streams.tty
                && bytes.contains(&INTERRUPT)
            {
                return Ok(INTERRUPTED);
            }
        }
    }

    /// Gives the input to a command that reads it; returns its exit code.
    async fn interact(&mut self, reader: &mut InputReader) -> Result<i32, Gone> {
        if !self.streams.stdin {
            return Ok(0);
        }
        let mut shown = self.prompt(reader).to_vec();
        loop {
            self.show(&mut shown).await?;
            match self.next_until(None).await? {
                None | Some(Sent::Other) => {}
                Some(Sent::EndOfInput) => {
                    let code = self.end_input(reader, &mut shown).await?;
                    self.show(&mut shown).await?;
                    return Ok(code);
                }
                Some(Sent::Input(bytes)) => {
                    let code = self.type_in(reader, &bytes, &mut shown).await?;
                    if let Some(code) = code {
                        self.show(&mut shown).await?;
                        return Ok(code);
                    }
                }
            }
        }
    }

    /// Takes input; returns the exit code if it ends the command. What it shows of the input is added to `shown`, so that
    /// it is one message, however many bytes were typed.
    async fn type_in(
        &mut self,
        reader: &mut InputReader,
        bytes: &[u8],
        shown: &mut Vec<u8>,
    ) -> Result<Option<i32>, Gone> {
        let tty = self.streams.tty;
        if !tty && reader.input == StdinUse::Copied {
            shown.extend_from_slice(bytes);
            return Ok(None);
        }
        for byte in bytes {
            match *byte {
                INTERRUPT if tty => return Ok(Some(INTERRUPTED)),
                END_OF_INPUT if tty => return self.end_input(reader, shown).await.map(Some),
                b'\r' | b'\n' => {
                    // Kubernetes: the client's terminal is raw, the other end shows what is typed.
                    shown.extend(tty.then_some(b'\n'));
                    if let Some(code) = self.end_line(reader, shown).await? {
                        return Ok(Some(code));
                    }
                    shown.extend_from_slice(self.prompt(reader));
                }
                _ if reader.line.len() >= MAX_LINE => return Ok(Some(LINE_TOO_LONG)),
                byte => {
                    shown.extend(tty.then_some(byte));
                    reader.line.push(byte);
                }
            }
        }
        Ok(None)
    }

    async fn end_input(&mut self, reader: &mut InputReader, shown: &mut Vec<u8>) -> Result<i32, Gone> {
        let code = if reader.line.is_empty() { None } else { self.end_line(reader, shown).await? };
        Ok(code.unwrap_or(reader.code))
    }

    /// Carries out a line; returns the exit code if that ends the command.
    async fn end_line(&mut self, reader: &mut InputReader, shown: &mut Vec<u8>) -> Result<Option<i32>, Gone> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut reader.line)).into_owned();
        if reader.input == StdinUse::Copied {
            shown.extend(format!("{line}\n").bytes());
            return Ok(None);
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => return Ok(None),
            ["exit"] => return Ok(Some(reader.code)),
            ["exit", code] => return Ok(Some(code.parse().unwrap_or(2))),
            _ => {}
        }
        self.show(shown).await?;
        let command = ["sh".to_owned(), "-c".to_owned(), line];
        let container = &reader.container;
        let plan = |simulation: &Simulation<'_>| exec::plan(simulation, container, &command);
        let plan = self.kubelet.workshop().simulate(&self.world, &reader.pod, plan).await;
        reader.code = self.play(plan).await?;
        Ok(None)
    }

    fn prompt(&self, reader: &InputReader) -> &'static [u8] {
        let is_shown = self.streams.tty && reader.input == StdinUse::Executed;
        if is_shown { PROMPT.as_bytes() } else { b"" }
    }

    /// Sends what a command has shown of its input.
    async fn show(&mut self, shown: &mut Vec<u8>) -> Result<(), Gone> {
        let text = std::mem::take(shown);
        if text.is_empty() { Ok(()) } else { self.write(OutputStream::Stdout, &text).await }
    }

    /// Writes a log as it grows.
    async fn attach(&mut self, mut followed: FollowedLog) -> Result<Value, Gone> {
        loop {
            let piece = {
                let (piece, sent) = (pin!(followed.next()), pin!(self.socket.next()));
                match select(piece, sent).await {
                    Either::Left((piece, _)) => Ok(piece),
                    Either::Right((message, _)) => Err(message),
                }
            };
            match piece {
                Ok(Some(piece)) => self.write(OutputStream::Stdout, &piece).await?,
                Ok(None) => return Ok(success()),
                Err(message) => drop(self.take(message).await?),
            }
        }
    }

    /// What the client sends next, or `None` at that time. Ends the session if nothing happens for too long.
    async fn next_until(&mut self, wake: Option<Moment>) -> Result<Option<Sent>, Gone> {
        let idle_at = self.world.now() + IDLE;
        let message = {
            let (sent, time) =
                (pin!(self.socket.next()), pin!(self.world.sleep_until(wake.unwrap_or(idle_at))));
            match select(sent, time).await {
                Either::Left((message, _)) => message,
                Either::Right(_) if wake.is_some() => return Ok(None),
                Either::Right(_) => return Err(Gone),
            }
        };
        self.take(message).await.map(Some)
    }

    async fn take(&mut self, message: Message) -> Result<Sent, Gone> {
        match message {
            Message::Ping(payload) => {
                self.socket.pong(&payload).await?;
                Ok(Sent::Other)
            }
            Message::End => Err(Gone),
            Message::Wrong(code) => {
                self.socket.close(code).await?;
                Err(Gone)
            }
            Message::Data(data) => Ok(match data[..] {
                [STDIN, ..] if self.streams.stdin => Sent::Input(data.slice(1..)),
                [END_OF, STDIN] if self.ends_input => Sent::EndOfInput,
                _ => Sent::Other,
            }),
        }
    }

    async fn write(&mut self, output: OutputStream, text: &[u8]) -> Result<(), Gone> {
        let channel = match output {
            OutputStream::Stderr if !self.streams.tty => STDERR,
            _ => STDOUT,
        };
        let is_wanted = if channel == STDERR { self.streams.stderr } else { self.streams.stdout };
        if !is_wanted {
            return Ok(());
        }
        if !self.streams.tty {
            return Ok(self.socket.send(channel, text).await?);
        }
        // A terminal in raw mode needs both.
        let text = String::from_utf8_lossy(text).replace('\n', "\r\n");
        Ok(self.socket.send(channel, text.as_bytes()).await?)
    }
}

/// A command that reads its input.
struct InputReader {
    pod: Arc<Pod>,
    container: String,
    input: StdinUse,
    /// The line that is being typed.
    line: Vec<u8>,
    /// The exit code of the last line.
    code: i32,
}

fn success() -> Value {
    json!({"metadata": {}, "status": "Success"})
}

/// Kubernetes: clients read the exit code from the cause.
fn status(command: &[String], code: i32) -> Value {
    if code == 0 {
        return success();
    }
    let words = command.join(" ");
    let message = format!(
        "command terminated with non-zero exit code: error executing command [{words}], exit code {code}"
    );
    json!({
        "metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}
