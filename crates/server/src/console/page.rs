//! What every page has: its frame, its headers, and, where something went wrong, a page that says
//! so in the reader's language.

use askama::Template;
use axum::body::to_bytes;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::Problem;
use chancery_runtime::clock;
use jiff::Timestamp;

use super::assets;
use super::door::SignInPage;
use super::learned::Learned;
use super::look::Look;
use super::lost::Lost;
use super::visitor::Visitor;
use super::words::Words;
use crate::error::{ApiError, Result};
use crate::router::App;

/// A page loads nothing but what is served with it, and runs no script but ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";
/// The body of a problem of ours is far smaller.
const PROBLEM_MAX: usize = 1 << 20;

/// Marks a response that was drawn for a person: it is nobody's problem+json.
#[derive(Debug, Clone, Copy)]
pub struct Drawn;

/// Which entry of the navigation a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Inbox,
    Chat,
    Runs,
    Mail,
    Organisation,
    Memory,
    Audit,
    Rules,
    Settings,
    Help,
    Nowhere,
}

/// What stands around every page.
#[derive(Debug)]
pub struct Frame {
    pub w: &'static Words,
    pub look: Look,
    pub room: Room,
    pub title: String,
    pub path: String,
    pub waiting: u64,
    /// Empty: nobody is signed in.
    pub person: String,
    pub operator: bool,
    pub csrf: String,
    /// What the live stream is asked to watch for this page.
    pub watch: String,
}

impl Frame {
    pub fn of(visitor: &Visitor, room: Room, title: &str) -> Frame {
        Frame {
            w: visitor.words(),
            look: visitor.look,
            room,
            title: title.to_owned(),
            path: visitor.path.clone(),
            waiting: visitor.waiting,
            person: visitor.name().to_owned(),
            operator: visitor.caller.is_operator(),
            csrf: visitor.csrf.clone(),
            watch: String::new(),
        }
    }

    /// The same, told when `what` changes.
    pub fn watching(self, what: impl Into<String>) -> Frame {
        Frame { watch: what.into(), ..self }
    }

    /// Marks a part of a page that is drawn anew: where the page watches something.
    pub fn live(&self) -> &'static str {
        if self.watch.is_empty() { "" } else { " data-live" }
    }

    /// For those who are not signed in.
    pub fn outside(look: Look, title: &str) -> Frame {
        Frame {
            w: look.words(),
            look,
            room: Room::Nowhere,
            title: title.to_owned(),
            path: "/".to_owned(),
            waiting: 0,
            person: String::new(),
            operator: false,
            csrf: String::new(),
            watch: String::new(),
        }
    }

    /// What the reader's clock is compared with.
    pub fn now(&self) -> Timestamp {
        clock::now()
    }

    pub fn css(&self) -> String {
        assets::path("ui.css")
    }

    pub fn js(&self) -> String {
        assets::path("ui.js")
    }

    /// The entries of the navigation, in their order.
    pub fn rooms(&self) -> [(Room, &'static str, &'static str); 9] {
        let w = self.w;
        [
            (Room::Inbox, "/inbox", w.inbox),
            (Room::Chat, "/chat", w.chat),
            (Room::Runs, "/runs", w.runs),
            (Room::Mail, "/mail", w.mail),
            (Room::Organisation, "/org", w.organisation),
            (Room::Memory, "/memory", w.memory),
            (Room::Audit, "/audit", w.audit),
            (Room::Rules, "/rules", w.rules),
            (Room::Settings, "/settings", w.settings),
        ]
    }
}

/// A drawn page.
pub fn draw(template: &impl Template) -> Result<Response> {
    draw_as(StatusCode::OK, template)
}

pub fn draw_as(status: StatusCode, template: &impl Template) -> Result<Response> {
    let text = template.render().map_err(|it| ApiError::Internal(format!("a page: {it}")))?;
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let own = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(own, HeaderValue::from_static("same-origin"));
    response.extensions_mut().insert(Drawn);
    Ok(response)
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    problem: Problem,
    /// Where whoever sent it was.
    back: String,
    /// What they had typed, by the name of its field.
    typed: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "again.html")]
struct AgainPage {
    frame: Frame,
}

/// Turns what went wrong into a page, and sends those who are not signed in to the door.
pub async fn dress(mut request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    request.extensions_mut().insert(asked.learned.clone());
    let response = next.run(request).await;
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|it| it.as_bytes() == b"application/problem+json");
    if !is_problem {
        return response;
    }
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED && asked.html {
        return if asked.reads { asked.shown_the_door() } else { asked.led_to_sign_in() };
    }
    if !asked.html {
        return response;
    }
    let wait = response.headers().get(header::RETRY_AFTER).cloned();
    let body = to_bytes(response.into_body(), PROBLEM_MAX).await.unwrap_or_default();
    let mut drawn = match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => asked.told(status, problem),
        Err(_) => status.into_response(),
    };
    if let Some(wait) = wait {
        drawn.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    drawn
}

/// A page for somebody whose browser asked for what is not there.
pub async fn absent(app: &App, request: Request) -> Option<Response> {
    let asked = Asked::of(&request);
    if !asked.html {
        return None;
    }
    let (mut parts, _) = request.into_parts();
    parts.extensions.insert(asked.learned.clone());
    // Who is signed in keeps the way to the other pages; who is not is told all the same.
    let _ = Visitor::from_request_parts(&mut parts, app).await;
    Some(asked.told(StatusCode::NOT_FOUND, ApiError::NoRoute.problem()))
}

/// What must be known of a request after it was answered.
struct Asked {
    look: Look,
    html: bool,
    reads: bool,
    path: String,
    /// The browser came from another site, and so left our cookie at home.
    from_elsewhere: bool,
    /// What it was sent to, and with what.
    to: String,
    headers: HeaderMap,
    learned: Learned,
}

impl Asked {
    fn of(request: &Request) -> Asked {
        let headers = request.headers();
        let said = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or("");
        let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
        let reads = request.method() == Method::GET;
        Asked {
            look: Look::of(headers),
            html: said("accept").contains("text/html"),
            reads,
            path: if reads { path.to_owned() } else { "/".to_owned() },
            from_elsewhere: reads && said("sec-fetch-site") == "cross-site",
            to: path.to_owned(),
            headers: headers.clone(),
            learned: Learned::default(),
        }
    }

    /// A link in a chat comes from another site, and the visit's cookie does not come with it:
    /// the same address, asked for by our own page, has it.
    fn shown_the_door(self) -> Response {
        if self.from_elsewhere {
            return again(self.look, &self.path).unwrap_or_else(ApiError::into_response);
        }
        if self.path == "/" {
            return Redirect::to("/signin").into_response();
        }
        Redirect::to(&format!("/signin?next={}", escaped(&self.path))).into_response()
    }

    /// Whoever sent something finds it there again: an address would not carry it.
    fn led_to_sign_in(self) -> Response {
        let known = self.learned.known();
        let back = known.back(&self.headers, &self.to);
        let lost = Lost::of(&self.to, &known);
        let page = SignInPage::again(self.look, &known, &back, lost);
        draw_as(StatusCode::UNAUTHORIZED, &page).unwrap_or_else(ApiError::into_response)
    }

    fn told(self, status: StatusCode, problem: Problem) -> Response {
        let (w, known) = (self.look.words(), self.learned.known());
        let back = known.back(&self.headers, &self.to);
        let frame = match &known.visitor {
            Some(visitor) => Frame::of(visitor, Room::Nowhere, w.something_wrong),
            None => Frame::outside(self.look, w.something_wrong),
        };
        // Whoever changes the language or the light there is led back, too.
        let frame = Frame { path: back.clone(), ..frame };
        let typed = known.long().into_iter().cloned().collect();
        let page = ProblemPage { frame, problem, back, typed };
        draw_as(status, &page).unwrap_or_else(ApiError::into_response)
    }
}

/// A page that has the browser ask for a path of ours by itself.
pub fn again(look: Look, path: &str) -> Result<Response> {
    let frame = Frame { path: path.to_owned(), ..Frame::outside(look, "") };
    draw(&AgainPage { frame })
}

/// As a value of a query.
pub fn escaped(text: &str) -> String {
    percent(text, b"-_.~/")
}

/// As one part of a path.
pub fn segment(text: &str) -> String {
    percent(text, b"-_~")
}

fn percent(text: &str, plain: &[u8]) -> String {
    let plain = |it: &u8| it.is_ascii_alphanumeric() || plain.contains(it);
    text.bytes()
        .map(|it| if plain(&it) { (it as char).to_string() } else { format!("%{it:02X}") })
        .collect()
}

pub fn set_cookie(response: &mut Response, text: &str) -> Result<()> {
    let value = HeaderValue::from_str(text).map_err(|it| ApiError::Internal(it.to_string()))?;
    response.headers_mut().append(header::SET_COOKIE, value);
    Ok(())
}

/// Whether the browser speaks TLS, with us or with what stands before us.
pub fn is_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|it| it.as_bytes() == b"https")
}
