//! Real sockets on this machine, and names that answer what an attacker would have them answer.

use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::testing::{call, code};
use super::fetch::Resolver;
use super::*;

/// Answers by the path that it is asked for, until the test ends.
async fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = vec![0; 4096];
                let read = stream.read(&mut asked).await.unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
                let path = asked.split(' ').nth(1).unwrap_or("/").to_owned();
                let _ = stream.write_all(&answer(&path, at)).await;
            });
        }
    });
    at
}

fn answer(path: &str, at: SocketAddr) -> Vec<u8> {
    let (status, head, body) = match path {
        "/page" => (
            "200 OK",
            "Content-Type: text/html".to_owned(),
            "<title>T</title><p>Hello</p><script>x</script>".to_owned(),
        ),
        "/again" => ("302 Found", "Location: /page".to_owned(), String::new()),
        "/inside" => {
            ("302 Found", format!("Location: http://127.0.0.2:{}/page", at.port()), String::new())
        }
        "/name" => ("302 Found", "Location: http://inside.example/page".to_owned(), String::new()),
        "/file" => ("302 Found", "Location: file:///etc/passwd".to_owned(), String::new()),
        "/round" => ("302 Found", "Location: /round".to_owned(), String::new()),
        "/bytes" => ("200 OK", "Content-Type: application/octet-stream".to_owned(), "x".to_owned()),
        "/long" => ("200 OK", "Content-Type: text/plain".to_owned(), "x".repeat(3 * 1024 * 1024)),
        it if it.starts_with("/search?") => {
            let found = json!({"results": [{"title": it, "url": "https://a.example", "content": "c", "engine": "e"}]});
            ("200 OK", "Content-Type: application/json".to_owned(), found.to_string())
        }
        _ => ("404 Not Found", "Content-Type: text/plain".to_owned(), "nothing here".to_owned()),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Answers each time what is next, and the last for ever.
#[derive(Debug)]
struct Names(Mutex<Vec<Vec<SocketAddr>>>);

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Ok(answer.into_iter().map(|it| SocketAddr::new(it.ip(), port)).collect())
    }
}

fn reader(allowed: &[&str], answers: &[&[&str]]) -> ReadUrl {
    let allowed: Vec<String> = allowed.iter().map(|it| (*it).to_owned()).collect();
    let address = |it: &&str| SocketAddr::new(it.parse().unwrap(), 0);
    let answers = answers.iter().map(|it| it.iter().map(address).collect()).collect();
    let resolver = Arc::new(Names(Mutex::new(answers)));
    let fetcher = Fetcher { allowed: Networks::parse(&allowed).unwrap(), resolver };
    ReadUrl { spec: read_spec(), fetcher: Arc::new(fetcher) }
}

#[tokio::test]
async fn a_page_is_read_as_text_where_the_operator_opened_its_address() {
    let port = site().await.port();
    let open = reader(&["127.0.0.1"], &[&["127.0.0.1"]]);
    for host in [format!("127.0.0.1:{port}"), format!("site.example:{port}")] {
        let read = call(&open, json!({"url": format!("http://{host}/again")})).await;
        assert_eq!(read.text, format!("url: http://{host}/page\nstatus: 200\ntitle: T\n\nHello"));
    }
    let long = call(&open, json!({"url": format!("http://127.0.0.1:{port}/long")})).await;
    assert!(long.text.ends_with("x\n[cut: there is more]"));
    assert!(long.text.len() < TEXT_CHARS_MAX + 200);
    for (path, expected) in
        [("bytes", "NOT_TEXT"), ("round", "FETCH_FAILED"), ("file", "INVALID_ARGUMENTS")]
    {
        let read = call(&open, json!({"url": format!("http://127.0.0.1:{port}/{path}")})).await;
        assert_eq!(code(&read), expected, "{path}: {}", read.text);
    }
}

#[tokio::test]
async fn no_way_of_writing_an_address_leads_inside() {
    let port = site().await.port();
    let closed = reader(&[], &[&["127.0.0.1"]]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "site.example",
        "127.0.0.1.",
        "169.254.169.254",
    ] {
        let read = call(&closed, json!({"url": format!("http://{host}:{port}/page")})).await;
        assert_eq!(code(&read), "PRIVATE_ADDRESS", "{host}: {}", read.text);
    }
    for url in
        ["file:///etc/passwd", "gopher://127.0.0.1/", "http://a@b.example/", "nothing", "http://"]
    {
        assert_eq!(code(&call(&closed, json!({ "url": url })).await), "INVALID_ARGUMENTS", "{url}");
    }
}

#[tokio::test]
async fn a_redirect_and_a_changing_name_lead_nowhere_inside() {
    let port = site().await.port();
    let page = |path: &str| json!({"url": format!("http://site.example:{port}/{path}")});
    // 127.0.0.1 stands for the world here; everything else is inside.
    for (answers, path, expected) in [
        (vec![&["127.0.0.1"][..]], "inside", "PRIVATE_ADDRESS"),
        (vec![&["127.0.0.1"][..], &["10.0.0.1"][..]], "name", "PRIVATE_ADDRESS"),
        (vec![&["127.0.0.1"][..], &["10.0.0.1"][..]], "again", "PRIVATE_ADDRESS"),
        (vec![&["127.0.0.1", "10.0.0.1"][..]], "page", "PRIVATE_ADDRESS"),
        (vec![&["10.0.0.1"][..]], "page", "PRIVATE_ADDRESS"),
        (vec![&[][..]], "page", "FETCH_FAILED"),
        // Looked up once: what it means a moment later does not matter.
        (vec![&["127.0.0.1"][..], &["10.0.0.1"][..]], "page", "OK"),
    ] {
        let reader = reader(&["127.0.0.1"], &answers);
        let read = call(&reader, page(path)).await;
        assert_eq!(code(&read), expected, "{answers:?} {path}: {}", read.text);
    }
}

#[tokio::test]
async fn a_search_asks_the_configured_endpoint_and_nothing_else() {
    let at = site().await;
    let settings = |search: Option<String>| WebSettings { search, ..WebSettings::default() };
    let (search, _) = tools(&settings(Some(format!("http://{at}/search"))), |it| it).unwrap();
    let found = call(&search, json!({"query": "a&b=c", "limit": 5})).await;
    let found: Value = serde_json::from_str(&found.text).unwrap();
    assert_eq!(found["results"][0]["title"], "/search?q=a%26b%3Dc&format=json");
    assert_eq!(found["results"][0].as_object().unwrap().len(), 3);
    let (search, _) = tools(&settings(Some(format!("http://{at}/other"))), |it| it).unwrap();
    assert_eq!(code(&call(&search, json!({"query": "x"})).await), "FETCH_FAILED");
    let (search, _) = tools(&settings(None), |it| it).unwrap();
    let unsaid = call(&search, json!({"query": "x"})).await;
    assert_eq!(code(&unsaid), "NOT_CONFIGURED");
    assert!(unsaid.text.contains("[tools.web] search"));
    assert!(tools(&settings(Some("ftp://x".to_owned())), |it| it).is_err());
}
