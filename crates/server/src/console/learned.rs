//! What is learned of a request while it is answered, for the page that says that it was refused:
//! who sent it, where they were, and what they had typed.

use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, header};

use super::form::own_path;
use super::visitor::{Visitor, tag_of};

/// Shared by the layer that draws the page and what reads the request.
#[derive(Debug, Clone, Default)]
pub struct Learned(Arc<Mutex<Known>>);

#[derive(Debug, Clone, Default)]
pub struct Known {
    pub visitor: Option<Visitor>,
    /// The fields of the form.
    fields: Vec<(String, String)>,
    /// Whether more was sent than is read of who is not signed in.
    pub too_long: bool,
    /// Who vouches for people here, for those who are to sign in again.
    pub issuer: Option<String>,
}

impl Learned {
    pub fn came(&self, visitor: &Visitor) {
        self.with(|it| it.visitor = Some(visitor.clone()));
    }

    pub fn typed(&self, fields: Vec<(String, String)>) {
        self.with(|it| it.fields = fields);
    }

    pub fn too_long(&self) {
        self.with(|it| it.too_long = true);
    }

    pub fn vouches(&self, issuer: Option<String>) {
        self.with(|it| it.issuer = issuer);
    }

    pub fn known(&self) -> Known {
        let mut known = Known::default();
        self.with(|it| known = it.clone());
        known
    }

    fn with(&self, change: impl FnOnce(&mut Known)) {
        // Whoever panicked while they held it has left nothing half done.
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

/// Shorter words are typed again sooner than copied.
const LINE: usize = 60;
/// What a page put into its form, and nobody typed.
const NOT_TYPED: [&str; 5] = ["csrf", "back", "digest", "mark", "confirmed"];
/// What is never given back: what opens something, and a second step that was taken once.
const NOT_KEPT: [&str; 7] = ["csrf", "digest", "mark", "confirmed", "token", "password", "secret"];

impl Known {
    /// What was typed and is longer than a line, if it was typed by who is there now.
    pub fn long(&self) -> Vec<&(String, String)> {
        let now = self.visitor.as_ref().map(|it| tag_of(it.name()));
        if now.zip(self.whose()).is_some_and(|(now, then)| now != then) {
            return Vec::new();
        }
        let is_long = |text: &str| text.contains('\n') || text.chars().count() > LINE;
        let typed = |it: &&(String, String)| !NOT_TYPED.contains(&&*it.0) && is_long(&it.1);
        self.fields.iter().filter(typed).collect()
    }

    /// The fields that may be given back to whom they are from.
    pub fn kept(&self) -> impl Iterator<Item = &(String, String)> {
        self.fields.iter().filter(|it| !NOT_KEPT.contains(&&*it.0) && !it.1.is_empty())
    }

    /// From whose page the form was: the digest of a name.
    pub fn whose(&self) -> Option<&str> {
        let mark = self.fields.iter().find(|it| it.0 == "csrf");
        mark.and_then(|it| it.1.split_once('.')).map(|it| it.1)
    }

    /// Where whoever sent it was: as the form says, or the browser, or by what it was sent to.
    /// Always a path of ours.
    pub fn back(&self, headers: &HeaderMap, path: &str) -> String {
        let form = self.fields.iter().find(|it| it.0 == "back").map(|it| own_path(&it.1));
        let said = |name| headers.get(name).and_then(|it| it.to_str().ok());
        let came_from = said(header::REFERER).zip(said(header::HOST));
        let came_from = came_from.and_then(|(from, host)| of_host(from, host));
        let known = form.or(came_from).filter(|it| *it != "/");
        known.map_or_else(|| page_of(path), str::to_owned)
    }
}

/// The path of an address, if it is this host's.
fn of_host<'a>(address: &'a str, host: &str) -> Option<&'a str> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let path = rest.strip_prefix(host)?;
    path.starts_with('/').then(|| own_path(path))
}

/// The page on which a form stands, by the path that it is sent to.
fn page_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let page = match parts.as_slice() {
        [room @ ("inbox" | "runs" | "contracts"), id, _] => format!("/{room}/{id}"),
        ["org", "draft"] => "/org/draft".to_owned(),
        ["chat", key] => format!("/chat/{key}"),
        [room, ..] => format!("/{room}"),
        [] => "/".to_owned(),
    };
    own_path(&page).to_owned()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_way_back_is_a_path_of_ours_whatever_is_said() {
        let back = |form: Option<&str>, referer: &'static str, path: &str| {
            let fields = form.map(|it| ("back".to_owned(), it.to_owned())).into_iter().collect();
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("here:7717"));
            headers.insert(header::REFERER, HeaderValue::from_static(referer));
            Known { fields, ..Known::default() }.back(&headers, path)
        };
        let at = "/runs/run_1/act";
        assert_eq!(back(Some("/chat/x"), "http://here:7717/inbox", at), "/chat/x");
        assert_eq!(back(None, "http://here:7717/inbox?show=done", at), "/inbox?show=done");
        for elsewhere in [
            "https://evil.example/inbox",
            "http://here:7717.evil.example/",
            "http://here:77170/x",
            "http://here:7717@evil.example/",
            "http://here:7717//evil.example",
            "",
        ] {
            assert_eq!(back(None, elsewhere, at), "/runs/run_1", "{elsewhere}");
        }
        assert_eq!(back(Some("//evil.example"), "", at), "/runs/run_1");
        assert_eq!(back(Some("https://evil.example"), "", "/settings/tokens"), "/settings");
        for (path, page) in [
            ("/inbox/perm_1/decide", "/inbox/perm_1"),
            ("/inbox/bulk", "/inbox"),
            ("/chat/talk-1", "/chat/talk-1"),
            ("/org/draft", "/org/draft"),
            ("/memory/mem_1/forget", "/memory"),
            ("/settings/visits/00/end", "/settings"),
            ("/", "/"),
            ("//evil.example/x", "/evil.example"),
        ] {
            assert_eq!(back(None, "", path), page);
        }
    }

    #[test]
    fn only_what_was_typed_and_is_long_is_given_back() {
        let field = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let long = "x".repeat(61);
        let fields = vec![
            field("csrf", &long),
            field("comment", "short"),
            field("text", "two\nlines"),
            field("arguments", &long),
        ];
        let known = Known { fields, ..Known::default() };
        let names: Vec<&str> = known.long().iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["text", "arguments"]);
    }
}
