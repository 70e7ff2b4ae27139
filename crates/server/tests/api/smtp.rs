//! Letters: the same is told by mail, through a mail server that is not ours.

use std::process::Stdio;

use chancery_server::config::{Config, SmtpConfig, SmtpEncryption};
use chancery_testkit::mcp_servers;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::house::{House, On, on_both};

on_both! {
    heavy_a_question_is_told_by_mail_to_those_who_are_named;
}

/// Prints its port, then each letter that it took, a line each. Whoever does not log in as
/// `post` is not served.
const MAIL_SERVER: &str = r#"
import asyncio, email, email.policy, json, sys
from aiosmtpd.smtp import SMTP, AuthResult

class Box:
    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos,
            "headers": dict(mail.items()), "text": mail.get_content()}), flush=True)
        return "250 OK"

def known(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"post", b"open sesame"))

async def main():
    make = lambda: SMTP(Box(), authenticator=known, auth_required=True, auth_require_tls=False)
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;

struct MailServer {
    _process: Child,
    port: u16,
    said: Lines<BufReader<ChildStdout>>,
}

impl MailServer {
    #[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
    async fn start() -> MailServer {
        let python = mcp_servers::smtp_python().unwrap();
        let mut command = tokio::process::Command::new(python);
        command.args(["-c", MAIL_SERVER]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = said.next_line().await.unwrap().unwrap().parse().unwrap();
        MailServer { _process: process, port, said }
    }

    async fn letter(&mut self) -> Value {
        serde_json::from_str(&self.said.next_line().await.unwrap().unwrap()).unwrap()
    }
}

fn board(port: u16, encryption: SmtpEncryption) -> SmtpConfig {
    SmtpConfig {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        encryption,
        username: Some("post".to_owned()),
        password_env: Some("POST_PASSWORD".to_owned()),
        from: "Chancery <chancery@example.org>".to_owned(),
        to: ["Lin <lin@example.org>", "mei@example.org"].map(str::to_owned).to_vec(),
        events: vec!["permission.requested".to_owned()],
    }
}

async fn heavy_a_question_is_told_by_mail_to_those_who_are_named(on: On) {
    let mut server = MailServer::start().await;
    let port = server.port;
    let settle = |config: &mut Config| {
        config.public_url = Some("https://chancery.example/".to_owned());
        config.smtp = [
            ("board".to_owned(), board(port, SmtpEncryption::None)),
            // This server speaks in the open alone: nothing is told to it that must not be.
            ("guarded".to_owned(), board(port, SmtpEncryption::Starttls)),
        ]
        .into();
    };
    let house = House::with_environment(on, settle, &[("POST_PASSWORD", "open sesame")]).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a hidden account"}]]])).await;

    let letter = server.letter().await;
    assert_eq!(letter["from"], "chancery@example.org");
    assert_eq!(letter["to"], json!(["lin@example.org", "mei@example.org"]));
    assert_eq!(letter["headers"]["Subject"], "[Chancery] a call waits for your word");
    let link = format!("https://chancery.example/inbox/{}", asked[0]["id"].as_str().unwrap());
    let text = letter["text"].as_str().unwrap();
    assert!(text.starts_with("[HIGH] pa asks for pay for lin"), "{text}");
    assert!(text.contains(&link) && !letter.to_string().contains("hidden"), "{letter}");

    let operator = house.server.operator();
    let log = loop {
        let page = operator.get("/api/webhooks/deliveries").await.json();
        let items = page["items"].as_array().unwrap().clone();
        let by = |name: &str| items.iter().any(|it| it["subscriber"] == name);
        if by("board") && by("guarded") {
            break items;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    for it in &log {
        let refused = it["error"].as_str().is_some_and(|it| it.contains("STARTTLS"));
        assert_eq!(refused, it["subscriber"] == "guarded", "{log:?}");
        assert!(refused || it["error"].is_null(), "{log:?}");
    }
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    house.close().await;
}
