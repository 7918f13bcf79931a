//! A connection of bytes that is either an upgraded one, or is tunnelled through the messages of a WebSocket.

use super::web_socket::{self, BINARY, CLOSE, CloseCode, Message, PONG, WebSocket};
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::mpsc,
};

/// So much is read at once.
const READ: usize = 16 << 10;

/// What has come.
pub(super) enum TunnelEvent {
    Bytes(Bytes),
    /// To be answered with [`Outgoing::Pong`].
    Ping(Bytes),
    End,
}

/// What is to be sent.
pub(super) enum Outgoing {
    Bytes(Bytes),
    Pong(Bytes),
}

pub(super) enum Source<S> {
    Plain(S),
    Tunnelled(WebSocket<S>),
}

pub(super) struct Sink<S> {
    stream: S,
    is_web_socket: bool,
}

/// The two directions of a connection.
pub(super) fn split<S: AsyncRead + AsyncWrite>(
    stream: S,
    is_web_socket: bool,
) -> (Source<ReadHalf<S>>, Sink<WriteHalf<S>>) {
    let (reader, writer) = tokio::io::split(stream);
    let source = match is_web_socket {
        true => Source::Tunnelled(WebSocket::new(reader)),
        false => Source::Plain(reader),
    };
    (source, Sink { stream: writer, is_web_socket })
}

impl<S: AsyncRead + Unpin> Source<S> {
    /// What comes next. To drop this future loses nothing.
    pub(super) async fn next(&mut self) -> TunnelEvent {
        match self {
            Source::Plain(stream) => {
                let mut bytes = BytesMut::with_capacity(READ);
                match stream.read_buf(&mut bytes).await {
                    Ok(1..) => TunnelEvent::Bytes(bytes.freeze()),
                    Ok(0) | Err(_) => TunnelEvent::End,
                }
            }
            Source::Tunnelled(socket) => match socket.next().await {
                Message::Data(bytes) => TunnelEvent::Bytes(bytes),
                Message::Ping(payload) => TunnelEvent::Ping(payload),
                Message::End | Message::Wrong(_) => TunnelEvent::End,
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> Sink<S> {
    /// Writes until all senders are gone, or the client is; then closes the connection.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Outgoing>) {
        while let Some(outgoing) = waiting.recv().await {
            let bytes = match outgoing {
                Outgoing::Bytes(bytes) if self.is_web_socket => web_socket::frame(BINARY, &bytes).freeze(),
                Outgoing::Bytes(bytes) => bytes,
                Outgoing::Pong(payload) => web_socket::frame(PONG, &payload).freeze(),
            };
            if self.stream.write_all(&bytes).await.is_err() || self.stream.flush().await.is_err() {
                return;
            }
        }
        if self.is_web_socket {
            let code = (CloseCode::Normal as u16).to_be_bytes();
            drop(self.stream.write_all(&web_socket::frame(CLOSE, &code)).await);
        }
        drop(self.stream.shutdown().await);
    }
}
