//! Which thread of talk a request belongs to: what the client names, and its runs.

use axum::http::HeaderMap;
use chancery_api::openai::Metadata;
use chancery_domain::id::{AgentId, GroupId, SessionKey};
use chancery_store::read::{RunFilter, RunRow};

use super::models::Addressee;
use crate::error::Result;
use crate::extract::{bad_request, check_name};
use crate::router::App;

const OURS: &str = "x-chancery-thread-id";
/// Open WebUI's own, where it is told to send it.
const CHAT: &str = "x-openwebui-chat-id";

#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    pub key: SessionKey,
    /// It was named in our terms, and not in passing by a chat program that does so always.
    pub is_meant: bool,
}

pub fn named(headers: &HeaderMap, metadata: Option<&Metadata>) -> Result<Option<Thread>> {
    let header = |name: &str| -> Result<Option<String>> {
        let Some(given) = headers.get(name) else { return Ok(None) };
        let given = std::str::from_utf8(given.as_bytes());
        given.map(|it| Some(it.to_owned())).map_err(|_| bad_request(format!("`{name}` is no text")))
    };
    let thread = |key: String, name: &str, is_meant: bool| -> Result<Option<Thread>> {
        check_name(name, &key)?;
        Ok(Some(Thread { key: SessionKey(key), is_meant }))
    };
    if let Some(key) = header(OURS)? {
        return thread(key, OURS, true);
    }
    if let Some(key) = metadata.and_then(|it| it.thread_id.clone()) {
        return thread(key, "metadata.thread_id", true);
    }
    match header(CHAT)? {
        Some(key) => thread(key, CHAT, false),
        None => Ok(None),
    }
}

/// The last run of a thread with somebody.
pub async fn latest(app: &App, to: &Addressee, key: &SessionKey) -> Result<Option<RunRow>> {
    let filter = RunFilter {
        user: Some(to.user.clone()),
        agent: to.run.agent.clone().map(AgentId),
        group: to.run.group.clone().map(GroupId),
        session_key: Some(key.clone()),
        ..RunFilter::default()
    };
    Ok(app.store.runs(&filter, 1).await?.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_name_for_a_thread_comes_before_all_others() {
        let mut headers = HeaderMap::new();
        let metadata = Metadata { thread_id: Some("m".to_owned()) };
        let key = |headers: &HeaderMap, metadata| {
            named(headers, metadata).unwrap().map(|it| (it.key.0, it.is_meant))
        };
        assert_eq!(key(&headers, None), None);
        headers.insert(CHAT, "c".parse().unwrap());
        assert_eq!(key(&headers, None), Some(("c".to_owned(), false)));
        assert_eq!(key(&headers, Some(&metadata)), Some(("m".to_owned(), true)));
        headers.insert(OURS, "o".parse().unwrap());
        assert_eq!(key(&headers, Some(&metadata)), Some(("o".to_owned(), true)));
        headers.insert(OURS, "".parse().unwrap());
        assert!(named(&headers, None).is_err(), "what is named is never passed over");
    }
}
