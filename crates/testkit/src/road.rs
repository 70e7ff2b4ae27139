//! A road to a server, on which things happen: it is closed, jammed, or breaks off in the middle
//! of a message. It carries bytes and knows nothing of what they say.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Less than most answers have, so that what breaks off breaks off within one.
const PIECE: usize = 4096;

/// Gone with this value, and whoever is on it with it.
#[derive(Debug)]
pub struct Road {
    /// The server's URL, by this road.
    pub url: String,
    port: u16,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Raised by every closing and every opening: open when even.
    turns: u64,
    /// Whoever is on it stands still.
    jammed: bool,
    /// Raised to break off what is sent next, on every connection that there is.
    breaks: u64,
}

impl Road {
    /// To a PostgreSQL, by its URL.
    pub async fn to(url: &str) -> Road {
        let parsed: Result<tokio_postgres::Config, _> = url.parse();
        let config = parsed.unwrap_or_else(|it| panic!("no road to {url}: {it}"));
        let host = match config.get_hosts() {
            [tokio_postgres::config::Host::Tcp(host)] => host.clone(),
            other => panic!("no road to {other:?}"),
        };
        let far = config.get_ports().first().copied().unwrap_or(5432);
        let bound = async {
            let gate = TcpListener::bind("127.0.0.1:0").await?;
            let port = gate.local_addr()?.port();
            Ok::<_, std::io::Error>((gate, port))
        };
        let (gate, port) = bound.await.unwrap_or_else(|it| panic!("no road: {it}"));
        let (state, watched) = watch::channel(State::default());
        tokio::spawn(let_in(gate, (host, far), watched));
        Road { url: url.replace(&format!(":{far}"), &format!(":{port}")), port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes an open road, opens a closed one. Whoever is on it is thrown off.
    pub fn turn(&self) {
        self.state.send_modify(|it| it.turns += 1);
    }

    /// Throws everybody off. They may come again.
    pub fn cut(&self) {
        self.state.send_modify(|it| it.turns += 2);
    }

    /// Whatever is sent next on a connection that exists arrives half, and then it is cut.
    pub fn break_off(&self) {
        self.state.send_modify(|it| it.breaks += 1);
    }

    /// Nothing moves, or it goes on.
    pub fn jam(&self, jammed: bool) {
        self.state.send_modify(|it| it.jammed = jammed);
    }
}

async fn let_in(gate: TcpListener, far: (String, u16), watched: watch::Receiver<State>) {
    let mut closing = watched.clone();
    loop {
        let accepted = tokio::select! {
            accepted = gate.accept() => accepted,
            // The road itself is gone.
            Err(_) = closing.wait_for(|_| false) => return,
        };
        let Ok((near, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let began = *watched.borrow();
        if began.turns % 2 == 1 {
            continue;
        }
        let (far, watched) = (far.clone(), watched.clone());
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(far).await else { return };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let (near_reads, near_writes) = near.into_split();
            let (far_reads, far_writes) = far.into_split();
            // Who ends one direction ends both.
            tokio::select! {
                () = carry(near_reads, far_writes, began, watched.clone()) => {}
                () = carry(far_reads, near_writes, began, watched) => {}
            }
        });
    }
}

/// One direction of one connection, until it ends or the road is turned.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    began: State,
    mut watched: watch::Receiver<State>,
) {
    let mut turned = watched.clone();
    let moved = async {
        let mut piece = [0; PIECE];
        loop {
            let Ok(length @ 1..) = from.read(&mut piece).await else { return };
            let Ok(state) = watched.wait_for(|it| !it.jammed).await.map(|it| *it) else { return };
            let broken = state.breaks != began.breaks;
            let arrives = if broken { length / 2 } else { length };
            if to.write_all(&piece[..arrives]).await.is_err() || broken {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        _ = turned.wait_for(|it| it.turns != began.turns) => {}
        () = moved => {}
    }
}
