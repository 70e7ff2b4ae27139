//! A subscriber that takes a letter: people without a chat.

use std::time::Duration;

use chancery_store::outbox::Notice;
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::message::Letter;

/// The longest that a mail server may take to answer a line.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a mail server must show before it is told anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encryption {
    /// It begins in the open and must go on encrypted.
    #[default]
    Starttls,
    /// It begins encrypted.
    Implicit,
    /// None: for a server on this machine.
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum SmtpError {
    #[error("`{0}` is not an address: {1}")]
    Address(String, lettre::address::AddressError),
    #[error("no letters can be sent to `{0}`: {1}")]
    Server(String, lettre::transport::smtp::Error),
}

#[derive(Clone)]
pub struct SmtpSubscriber {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl SmtpSubscriber {
    pub fn new(
        (host, port): (&str, u16),
        encryption: Encryption,
        login: Option<(String, String)>,
        from: &str,
        to: &[String],
    ) -> Result<SmtpSubscriber, SmtpError> {
        let mailbox = |given: &str| -> Result<Mailbox, SmtpError> {
            given.parse().map_err(|it| SmtpError::Address(given.to_owned(), it))
        };
        let certified = || {
            TlsParameters::new(host.to_owned()).map_err(|it| SmtpError::Server(host.to_owned(), it))
        };
        let tls = match encryption {
            Encryption::Starttls => Tls::Required(certified()?),
            Encryption::Implicit => Tls::Wrapper(certified()?),
            Encryption::None => Tls::None,
        };
        let mut server = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if let Some((name, password)) = login {
            server = server.credentials(Credentials::new(name, password));
        }
        let to = to.iter().map(|it| mailbox(it)).collect::<Result<_, _>>()?;
        Ok(SmtpSubscriber { server: server.build(), from: mailbox(from)?, to })
    }

    /// One letter to all. Its `Message-ID` is the same however often it is sent.
    pub(super) async fn send(&self, notice: &Notice, letter: Letter) -> Result<(), String> {
        let here = self.from.email.domain();
        let mut message = Message::builder()
            .message_id(Some(format!("<{}.{}@{here}>", notice.id, notice.run)))
            .from(self.from.clone())
            .subject(letter.subject)
            .header(ContentType::TEXT_PLAIN);
        for each in &self.to {
            message = message.to(each.clone());
        }
        let message = message.body(letter.text).map_err(|it| it.to_string())?;
        self.server.send(message).await.map(drop).map_err(|it| it.to_string())
    }
}

// Without the login.
impl std::fmt::Debug for SmtpSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmtpSubscriber")
            .field("from", &self.from)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}
